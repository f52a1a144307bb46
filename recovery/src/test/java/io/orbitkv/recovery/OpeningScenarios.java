package io.orbitkv.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.kit.Gen;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Goal: whatever a life of the store left behind, the next opening finds every block that it must, none that it must
 * not, and every page is accounted for.
 *
 * <p>Method: logs written by hand with the codecs, then opened; the same scenarios on the real file system and on the
 * simulated drive. The accounting identity is asserted at every opening (by {@link TestLife}).
 */
abstract class OpeningScenarios {
    static final long CAP_BYTES = 8L << 20;
    static final int SEGMENT_BYTES = 256 << 10;
    static final long CHAT = 11;
    static final long CODE = 12;

    /** The folder for the first life. */
    abstract DataFolder start();

    /** Ends a life by a kill; the folder for the next one. */
    abstract DataFolder kill(TestLife life);

    /** Ends a life by a power loss; the folder for the next one. */
    abstract DataFolder losePower(TestLife life);

    abstract OpeningOptions options();

    TestLife open(DataFolder folder) {
        return new TestLife(folder, options());
    }

    /** A first life with two namespaces. */
    TestLife firstLife() {
        TestLife life = open(start());
        assertEquals(OpeningKind.FRESH, life.opened.kind());
        try (Catalog.Batch batch = life.opened.catalog().begin()) {
            for (long id64 : new long[] {CHAT, CODE}) {
                batch.putNamespace(new NamespaceRow(id64, new Gen(id64).bytes(32), 1, new byte[10]));
            }
            batch.commit();
        }
        return life;
    }

    static TestBlock block(long namespace, long number, int bytes) {
        return new TestBlock(namespace, 1, number, number % 100 == 0 ? -1 : number - 1, bytes, 0, number + 1);
    }

    /** Consecutive blocks of one prefix. */
    static List<TestBlock> chain(long namespace, long first, int count, int bytes) {
        return Stream.iterate(first, n -> n + 1)
                .limit(count)
                .map(n -> block(namespace, n, bytes))
                .toList();
    }

    /** Fills a segment with batches and seals it. */
    static List<TestBlock> sealed(LogWriter log, int segment, long use, long namespace, long first) {
        List<TestBlock> all = new ArrayList<>();
        log.start(segment, use);
        for (int i = 0; i < 3; i++) {
            List<TestBlock> some = chain(namespace, first + i * 5L, 5, 9000);
            assertTrue(log.fits(some));
            log.batch(some);
            all.addAll(some);
        }
        log.seal();
        log.flush();
        return all;
    }

    @Test
    void anEmptyFolderBecomesAStoreThatOpensAgain() {
        TestLife life = open(start());
        assertEquals(OpeningKind.FRESH, life.opened.kind());
        assertEquals(1, life.opened.epoch());
        assertEquals(1, life.opened.nextPosition());
        assertEquals(1, life.opened.logState().nextUseSequence());
        long allocated = life.folder.allocatedBytes("");
        assertTrue(allocated <= CAP_BYTES && allocated > CAP_BYTES * 3 / 4, "allocated " + allocated);
        int segments = life.opened.geometry().segments();
        assertEquals(segments, life.opened.accounting().segmentsFree());
        life = open(kill(life));
        assertEquals(OpeningKind.KILL, life.opened.kind());
        assertEquals(2, life.opened.epoch());
        assertTrue(life.opened.nextPosition() >= Opening.POSITION_STRIDE, "positions never repeat");
        assertTrue(life.opened.logState().nextUseSequence() >= Opening.USE_SEQUENCE_STRIDE);
        life = open(losePower(life));
        assertEquals(OpeningKind.POWER_LOSS, life.opened.kind());
        assertEquals(segments, life.opened.accounting().segmentsFree());
        assertEquals(1, life.opened.catalog().counter(CatalogCounter.KILLS));
        assertEquals(1, life.opened.catalog().counter(CatalogCounter.POWER_LOSSES));
        life.close();
    }

    @Test
    void aKillKeepsWhatIsInTheLog() {
        TestLife life = firstLife();
        List<TestBlock> good = new ArrayList<>();
        List<TestBlock> inFlight = chain(CHAT, 900, 4, 5000);
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            good.addAll(sealed(log, 3, 1, CHAT, 100));
            good.addAll(sealed(log, 0, 2, CODE, 200));
            log.start(5, 3);
            good.addAll(chain(CHAT, 300, 7, 100));
            log.batch(chain(CHAT, 300, 7, 100));
            log.batch(inFlight, true, false);
            log.start(6, 4); // a header and no batch: free
        }
        life = open(kill(life));
        life.requireAll(good);
        life.requireNone(inFlight);
        assertEquals(3, life.opened.accounting().segmentsUsed());
        assertEquals(37, life.opened.accounting().indexedBlocks());
        assertEquals(2, life.opened.report().footersRead());
        assertEquals(1, life.opened.report().footersWritten());
        assertFalse(life.opened.logState().isSealed(6));
        assertTrue(life.opened.logState().nextUseSequence() > 4);
        assertEquals(3, life.opened.logState().useSequence(5));
        assertTrue(life.opened.nextPosition() > 307);
        life = open(kill(life));
        life.requireAll(good);
        assertEquals(3, life.opened.report().footersRead());
        assertEquals(0, life.opened.report().batchesWalked());
        DataFolder next = kill(life);
        VerifyReport verified = Verify.run(next, options());
        assertTrue(verified.isClean(), verified.problems().toString());
        assertEquals(37, verified.blocksChecked());
        next.close();
    }

    @Test
    void aCleanStopIsReadFromItsSnapshot() {
        TestLife life = firstLife();
        List<TestBlock> good = new ArrayList<>();
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            for (int i = 0; i < 8; i++) {
                good.addAll(sealed(log, i, i + 1, i % 2 == 0 ? CHAT : CODE, 1000 + i * 100));
            }
        }
        life = open(kill(life));
        long position = life.opened.nextPosition() + 5;
        long use = life.opened.logState().nextUseSequence() + 2;
        assertTrue(stop(life, position, use));
        life = open(kill(life));
        assertEquals(OpeningKind.CLEAN, life.opened.kind());
        assertEquals(position, life.opened.nextPosition());
        assertEquals(use, life.opened.logState().nextUseSequence());
        assertEquals(8, life.opened.accounting().segmentsUsed());
        assertEquals(good.size(), life.opened.accounting().indexedBlocks());
        life.requireAll(good);
        assertFalse(Snapshot.existsIn(life.folder), "the snapshot is gone before anything changes");
        // Without another clean stop the log is scanned again.
        life = open(kill(life));
        assertEquals(OpeningKind.KILL, life.opened.kind());
        life.requireAll(good);
        // A clean stop before a power loss is as good.
        assertTrue(stop(life, life.opened.nextPosition(), life.opened.logState().nextUseSequence()));
        life = open(losePower(life));
        assertEquals(OpeningKind.CLEAN, life.opened.kind());
        life.requireAll(good);
        life.close();
    }

    static boolean stop(TestLife life, long position, long use) {
        return CleanStop.write(
                life.opened,
                life.opened.namespaces(),
                position,
                use,
                life.opened.budget().snapshotBytes(),
                WindowProbe.NONE);
    }

    @Test
    void evictedBlocksStayAwayAfterACleanStop() {
        TestLife life = firstLife();
        List<TestBlock> good;
        List<TestBlock> evicted;
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            good = sealed(log, 0, 1, CHAT, 100);
            evicted = sealed(log, 1, 2, CODE, 200);
        }
        life = open(kill(life));
        // The tier gave segment 1 up, and block 114 alone was forgotten.
        life.generations().raise(1);
        org.agrona.concurrent.UnsafeBuffer key = new org.agrona.concurrent.UnsafeBuffer(TestBlock.key(114));
        long extent = life.extent(CHAT, 114);
        assertTrue(life.opened.index().forget(life.number(CHAT), key, 0, io.orbitkv.nativeio.Tier.NVME, extent));
        try (Catalog.Batch batch = life.opened.catalog().begin()) {
            batch.putSegment(new SegmentRow(1, 2, SegmentRow.State.FREE, 0, 0, 0));
            batch.commit();
        }
        assertTrue(stop(life, life.opened.nextPosition(), 10));
        life = open(kill(life));
        assertEquals(OpeningKind.CLEAN, life.opened.kind());
        life.requireAll(good.subList(0, 14));
        life.requireNone(good.subList(14, 15));
        life.requireNone(evicted);
        assertEquals(1, life.opened.accounting().dead(DeadReason.EVICTED));
        assertEquals(1, life.opened.accounting().segmentsUsed());
        life.close();
    }

    @Test
    void aPowerLossTakesWhatWasNotDurable() {
        TestLife life = firstLife();
        List<TestBlock> good;
        List<TestBlock> lost = chain(CHAT, 400, 3, 6000);
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            good = new ArrayList<>(sealed(log, 2, 1, CHAT, 100));
            log.start(4, 2);
            log.batch(chain(CHAT, 300, 3, 6000));
            good.addAll(chain(CHAT, 300, 3, 6000));
            log.batch(lost, false, true); // the header survived, its payloads did not
            log.flush();
        }
        life = open(losePower(life));
        life.requireAll(good);
        life.requireNone(lost);
        assertEquals(3, life.opened.accounting().dead(DeadReason.WRONG_BYTES));
        assertEquals(21, life.opened.report().blocksChecked());
        assertEquals(3, life.opened.catalog().counter(CatalogCounter.WRONG_BLOCKS));
        // They stay away for good, whatever ends the next life.
        life = open(kill(life));
        life.requireAll(good);
        life.requireNone(lost);
        assertEquals(3, life.opened.accounting().dead(DeadReason.QUARANTINED));
        life = open(losePower(life));
        assertEquals(0, life.opened.report().blocksChecked(), "all is known to be durable now");
        DataFolder next = kill(life);
        VerifyReport verified = Verify.run(next, options());
        assertTrue(verified.isClean(), verified.problems().toString());
        assertEquals(3, verified.quarantinedBlocks());
        next.close();
    }

    @Test
    void whatWasClearedOrQuarantinedOrNeverKnownStaysAway() {
        TestLife life = firstLife();
        List<TestBlock> cleared;
        List<TestBlock> unknown;
        List<TestBlock> good;
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            cleared = sealed(log, 0, 1, CHAT, 100);
            good = new ArrayList<>(sealed(log, 1, 2, CODE, 200));
            unknown = sealed(log, 2, 3, 99, 300);
            log.start(3, 4);
            TestBlock newEpoch = new TestBlock(CHAT, 2, 100, -1, 700, 1, 50);
            good.add(newEpoch);
            log.batch(List.of(newEpoch, new TestBlock(CHAT, 3, 107, -1, 700, 1, 51)));
        }
        try (Catalog.Batch batch = life.opened.catalog().begin()) {
            batch.putNamespace(new NamespaceRow(CHAT, new Gen(CHAT).bytes(32), 2, new byte[10]));
            batch.putQuarantine(new QuarantineRow(1, 2, 2, 0, 0));
            batch.putQuarantine(new QuarantineRow(1, 1, 5, 0, 0)); // of an earlier use: means nothing, and is removed
            batch.commit();
        }
        life = open(kill(life));
        life.requireNone(good.subList(0, 1)); // the block at page 2 of segment 1
        life.requireAll(good.subList(1, good.size()));
        life.requireNone(cleared.subList(1, cleared.size()));
        assertTrue(life.opened.namespaces().stream().noneMatch(n -> n.row().id64() == 99));
        Accounting accounting = life.opened.accounting();
        assertEquals(15, accounting.dead(DeadReason.CLEARED));
        assertEquals(16, accounting.dead(DeadReason.UNKNOWN_NAMESPACE), "an epoch to come is unknown as well");
        assertEquals(unknown.size() + 1, accounting.dead(DeadReason.UNKNOWN_NAMESPACE));
        assertEquals(1, accounting.dead(DeadReason.QUARANTINED));
        life = open(kill(life));
        assertEquals(1, life.opened.catalog().atOpening().quarantine().size());
        life.close();
    }

    @Test
    void ofTwoListingsTheLaterUseWins() {
        TestLife life = firstLife();
        List<TestBlock> old;
        List<TestBlock> now = new ArrayList<>();
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            // The later use lies in the lower segment.
            old = sealed(log, 7, 1, CHAT, 100);
            log.start(2, 2);
            for (int i = 0; i < 4; i++) {
                now.add(new TestBlock(CHAT, 1, 103 + i, 102 + i, 3000, 5, 500 + i));
            }
            log.batch(now);
            // Twice within one segment: the later batch wins.
            TestBlock again = new TestBlock(CHAT, 1, 103, 102, 2000, 6, 600);
            log.batch(List.of(again));
            now.set(0, again);
        }
        life = open(kill(life));
        life.requireAll(now);
        life.requireAll(old.subList(0, 3));
        life.requireAll(old.subList(7, 15));
        assertEquals(5, life.opened.accounting().dead(DeadReason.SUPERSEDED));
        assertEquals(15, life.opened.accounting().indexedBlocks());
        life.close();
    }

    @Test
    void aFooterOfAnEarlierUseMeansNothing() {
        TestLife life = firstLife();
        List<TestBlock> old;
        List<TestBlock> now = chain(CODE, 700, 2, 3000);
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            old = sealed(log, 1, 1, CHAT, 100);
            log.start(1, 9);
            log.batch(now);
        }
        life = open(kill(life));
        life.requireAll(now);
        life.requireNone(old);
        // A use that has no batch yet leaves the segment free, in spite of what lies behind.
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            log.start(1, life.opened.logState().nextUseSequence());
        }
        life = open(kill(life));
        life.requireNone(now);
        assertEquals(0, life.opened.accounting().segmentsUsed());
        life.close();
    }

    @Test
    void aHeaderThatWasTornInReuseGivesTheOldUseBack() {
        TestLife life = firstLife();
        List<TestBlock> old;
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            old = sealed(log, 1, 1, CHAT, 100);
        }
        flip(life.folder, life.opened.geometry(), 1, 24);
        life = open(kill(life));
        life.requireAll(old);
        assertEquals(1, life.opened.report().headersRepaired());
        assertEquals(1, life.opened.logState().useSequence(1));
        life = open(kill(life));
        life.requireAll(old);
        assertEquals(0, life.opened.report().segmentsDamaged());
        life.close();
    }

    @Test
    void aTornHeaderOfAFreeSegmentIsMadeBlank() {
        TestLife life = firstLife();
        List<TestBlock> good;
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            good = sealed(log, 1, 1, CHAT, 100);
            log.start(2, 2); // put to use, and killed before the first batch
        }
        flip(life.folder, life.opened.geometry(), 2, 24);
        life = open(kill(life));
        assertEquals(1, life.opened.report().segmentsDamaged());
        assertEquals(1, life.opened.report().headersRepaired());
        assertEquals(1, life.opened.accounting().segmentsUsed());
        // It stays free until a clean stop, which counts as one.
        assertTrue(stop(life, life.opened.nextPosition(), life.opened.logState().nextUseSequence()));
        life = open(kill(life));
        assertEquals(OpeningKind.CLEAN, life.opened.kind());
        assertEquals(0, life.opened.report().segmentsDamaged());
        life.requireAll(good);
        life = open(kill(life));
        assertEquals(0, life.opened.report().segmentsDamaged());
        life.requireAll(good);
        life.close();
    }

    /** Flips a bit of a byte of a segment. */
    static void flip(DataFolder folder, LogGeometry geometry, int segment, long at) {
        flip(folder, LogGeometry.fileName(geometry.file(segment)), geometry.fileOffset(segment) + at);
    }

    /** Flips a bit of a byte of a file. */
    static void flip(DataFolder folder, String name, long at) {
        long page = at / MemoryRegion.PAGE_BYTES * MemoryRegion.PAGE_BYTES;
        try (StorageFile file = folder.open(name, true);
                MemoryRegion memory =
                        MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL)) {
            file.read(page, memory, 0, MemoryRegion.PAGE_BYTES);
            memory.putByte(at - page, (byte) (memory.getByte(at - page) ^ 1 << (at % 8)));
            file.write(page, memory, 0, MemoryRegion.PAGE_BYTES);
            file.flush();
        }
    }
}
