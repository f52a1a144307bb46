package io.orbitkv.bench.simulate;

/** Lets keys onto the drive. */
interface Admission {
    /** Whether a key that the drive does not hold is written to it, when it is saved or used in host memory. */
    boolean admits(int key);

    /**
     * A request is over.
     *
     * @param request its number
     * @param miss the first place of it that was a miss when it came, or its end
     */
    void end(int request, int miss);

    /** Writes everything when it is saved. */
    Admission ALL = new Admission() {
        @Override
        public boolean admits(int key) {
            return true;
        }

        @Override
        public void end(int request, int miss) {
            // nothing to learn
        }
    };
}
