package io.orbitkv.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Goal: the work beside fio is really done, no faster than its pace, and says so when it can't keep up. Method: a pace of
 * 5 ms, and one that no core keeps.
 */
class ByteWorkTest {
    private static final int BLOCK_BYTES = 256 << 10;
    private static final int BLOCKS = 8;

    private static ByteWork.Done run(ByteWork.Kind kind, double paceNanos, byte[] copied) throws InterruptedException {
        try (MemoryRegion source = region();
                MemoryRegion target = region()) {
            source.fill(0, source.bytes(), (byte) 7);
            target.fill(0, target.bytes(), (byte) 9);
            source.fill(0, 1, (byte) 1); // alike blocks would take each other out of the checksum
            ByteWork work = ByteWork.start(kind, source, target, BLOCK_BYTES, paceNanos);
            Thread.sleep(200);
            ByteWork.Done done = work.stop();
            assertNotEquals(0, work.checksum());
            target.copyTo(BLOCK_BYTES, copied, 0, 1);
            return done;
        }
    }

    private static MemoryRegion region() {
        return MemoryRegion.anonymous((long) BLOCKS * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    }

    @ParameterizedTest
    @EnumSource(ByteWork.Kind.class)
    void keepsItsPace(ByteWork.Kind kind) throws InterruptedException {
        byte[] copied = new byte[1];
        ByteWork.Done done = run(kind, 5e6, copied);
        assertTrue(done.blockNanos() > 2.5e6, done + ": the pace is 5 ms");
        assertEquals(kind == ByteWork.Kind.COPY_AND_CHECK ? 7 : 9, copied[0]);
    }

    @ParameterizedTest
    @EnumSource(ByteWork.Kind.class)
    void tellsWhatItNeedsWhereThePaceIsTooFast(ByteWork.Kind kind) throws InterruptedException {
        ByteWork.Done done = run(kind, 1, new byte[1]);
        assertTrue(done.blockNanos() > 1_000, done + ": no core checks 256 KiB in a microsecond");
        assertTrue(done.busyNanos() <= done.blockNanos(), done.toString());
    }
}
