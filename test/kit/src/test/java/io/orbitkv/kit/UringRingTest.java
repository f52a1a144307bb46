package io.orbitkv.kit;

import io.orbitkv.nativeio.IoRing;

/**
 * Goal: the ring of io_uring keeps the contract of rings.
 * Method: the shared suite, on a real file system; skipped with a message where the kernel or a container refuses
 * io_uring.
 */
class UringRingTest extends HostRingContract {
    @Override
    protected IoRing.Kind kind() {
        return IoRing.Kind.URING;
    }
}
