package io.orbitkv.kit;

import io.orbitkv.nativeio.IoRing;

/**
 * Goal: the ring of threads keeps the contract of rings.
 * Method: the shared suite, on a real file system.
 */
class ThreadsRingTest extends HostRingContract {
    @Override
    protected IoRing.Kind kind() {
        return IoRing.Kind.THREADS;
    }
}
