package io.orbitkv.nativeio;

/** Runs {@link RingTest} on threads. */
class ThreadsRingTest extends RingTest {
    @Override
    IoRing ring(HostFolder of, int depth) {
        return new ThreadsRing(RingFolders.of(of), depth);
    }
}
