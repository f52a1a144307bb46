package io.orbitkv.nativeio;

/** Runs {@link RingTest} on io_uring. */
class UringRingTest extends RingTest {
    @Override
    IoRing ring(HostFolder of, int depth) {
        return new UringRing(RingFolders.of(of), depth);
    }
}
