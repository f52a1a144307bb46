package io.orbitkv.nativeio;

/** Makes sure that a ring is used by one thread: the first one that submits or polls. */
final class RingOwner {
    private Thread owner;

    /** Whether this call made the calling thread the owner. */
    boolean check() {
        Thread now = Thread.currentThread();
        if (owner == now) {
            return false;
        }
        if (owner != null) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a ring belongs to the thread that used it first, '" + owner.getName() + "', and not to '"
                            + now.getName() + "'; this is a bug of the caller");
        }
        owner = now;
        return true;
    }

    /** Closing is also right for any thread while there is no owner, or after the owner has died. */
    void checkClose() {
        if (owner != null && owner.isAlive()) {
            check();
        }
    }

    boolean isCurrent() {
        return owner == Thread.currentThread();
    }

    Thread thread() {
        return owner;
    }
}
