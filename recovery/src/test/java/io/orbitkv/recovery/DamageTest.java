package io.orbitkv.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Seed;
import io.orbitkv.kit.SimulatedFolder;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Goal: a flipped bit anywhere costs at most the blocks that it is in; everything else stays, and no opening fails or
 * believes wrong bytes that it could have known of.
 *
 * <p>Method: a store of three sealed segments and an open one; a bit is flipped in each kind of place, the store is
 * opened after a kill or a power loss, and every block is looked for and read.
 */
final class DamageTest {
    private static final int PAGE = 4096;
    private static final int ROUNDS = Integer.getInteger("orbitkv.flips", 3);

    private final TestFolders folders = new TestFolders();
    private final List<TestBlock> first = new ArrayList<>();
    private final List<TestBlock> second = new ArrayList<>();
    private final List<TestBlock> open = new ArrayList<>();

    @AfterEach
    void remove() {
        folders.close();
    }

    private final OpeningOptions options = OpeningOptions.of(OpeningScenarios.CAP_BYTES)
            .withSegmentBytes(OpeningScenarios.SEGMENT_BYTES)
            .simulated(9);

    /** Two sealed segments (4 and 6) and an open one (2) with two batches of five blocks of three pages. */
    private TestLife filled(long seed) {
        first.clear();
        second.clear();
        open.clear();
        TestLife life = new TestLife(new SimulatedFolder(seed, folders.make("damage")), options);
        try (var batch = life.opened.catalog().begin()) {
            batch.putNamespace(
                    new io.orbitkv.index.NamespaceRow(OpeningScenarios.CHAT, new Gen(1).bytes(32), 1, new byte[0]));
            batch.commit();
        }
        try (LogWriter log = new LogWriter(life.folder, life.opened.geometry())) {
            first.addAll(OpeningScenarios.sealed(log, 4, 1, OpeningScenarios.CHAT, 100));
            second.addAll(OpeningScenarios.sealed(log, 6, 2, OpeningScenarios.CHAT, 200));
            log.start(2, 3);
            for (int i = 0; i < 2; i++) {
                List<TestBlock> some = OpeningScenarios.chain(OpeningScenarios.CHAT, 300 + i * 5L, 5, 9000);
                log.batch(some);
                open.addAll(some);
            }
            log.flush();
        }
        return life;
    }

    private TestLife next(TestLife life, boolean power) {
        SimulatedFolder folder = (SimulatedFolder) life.folder;
        if (power) {
            folder.powerLoss();
        } else {
            folder.kill();
        }
        life.close();
        return new TestLife(folder.reopen(), options);
    }

    private void damage(String what, int segment, int page, Runnable4 check) {
        Gen gen = new Gen(Seed.of(DamageTest.class));
        for (int round = 0; round < ROUNDS; round++) {
            for (boolean power : new boolean[] {false, true}) {
                TestLife life = filled(round);
                long at = (long) page * PAGE + gen.below(PAGE);
                if (what.equals("payload")) {
                    at = (long) page * PAGE + gen.below(9000);
                }
                OpeningScenarios.flip(life.folder, life.opened.geometry(), segment, at);
                life = next(life, power);
                check.on(life, power);
                // And the state that the opening left is as good as any.
                life = next(life, false);
                check.on(life, power);
                life.close();
            }
        }
    }

    @FunctionalInterface
    private interface Runnable4 {
        void on(TestLife life, boolean power);
    }

    private void all(TestLife life, boolean power) {
        life.requireAll(first);
        life.requireAll(second);
        life.requireAll(open);
    }

    @Test
    void aSegmentHeaderCostsNothing() {
        damage("header", 4, 0, this::all);
        damage("header of an open segment", 2, 0, this::all);
    }

    @Test
    void aBatchHeaderOfASealedSegmentCostsNothing() {
        damage("batch header", 4, 17, this::all);
    }

    @Test
    void aFooterCostsNothing() {
        damage("footer", 6, OpeningScenarios.SEGMENT_BYTES / PAGE - 1, this::all);
    }

    @Test
    void pagesThatNobodyUsesCostNothing() {
        damage("unused", 6, 50, this::all);
        damage("unused", 2, 40, this::all);
        damage("unused", 0, 0, this::all);
    }

    @Test
    void aBatchHeaderOfAnOpenSegmentCostsItsBatch() {
        damage("batch header", 2, 17, (life, power) -> {
            life.requireAll(first);
            life.requireAll(second);
            life.requireAll(open.subList(0, 5));
            life.requireNone(open.subList(5, 10));
        });
    }

    @Test
    void aPayloadCostsItsBlock() {
        damage("payload", 4, 18 + 3, (life, power) -> {
            life.requireAll(second);
            life.requireAll(open);
            life.requireAll(first.subList(0, 6));
            life.requireAll(first.subList(7, 15));
            assertFalse(life.has(first.get(6)), "wrong bytes are never taken for right ones");
            // After a power loss the opening has looked; after a kill the reader's checksum finds it.
            assertEquals(power, life.extent(OpeningScenarios.CHAT, first.get(6).number()) == Extent.NONE);
        });
    }

    @Test
    void headerAndFooterTogetherAreReadFromBatches() {
        TestLife life = filled(1);
        OpeningScenarios.flip(life.folder, life.opened.geometry(), 4, 30);
        OpeningScenarios.flip(life.folder, life.opened.geometry(), 4, OpeningScenarios.SEGMENT_BYTES - 20);
        life = next(life, false);
        all(life, false);
        assertEquals(1, life.opened.report().headersRepaired());
        assertEquals(2, life.opened.report().footersWritten());
        life = next(life, false);
        all(life, false);
        life.close();
    }

    @Test
    void aDamagedLockPageIsTakenForAPowerLoss() {
        TestLife life = filled(2);
        OpeningScenarios.flip(life.folder, FolderNames.LOCK, 30);
        life = next(life, false);
        assertEquals(OpeningKind.POWER_LOSS, life.opened.kind());
        all(life, false);
        life.close();
    }

    /** Every page of the snapshot in turn, at random bytes: the log is scanned and nothing is lost. */
    @Test
    void aDamagedSnapshotCostsTime() {
        Gen gen = new Gen(Seed.of(DamageTest.class));
        TestLife life = next(filled(3), false);
        for (int round = 0; round < 4 * ROUNDS; round++) {
            assertTrue(OpeningScenarios.stop(
                    life, life.opened.nextPosition(), life.opened.logState().nextUseSequence()));
            String name = round % 4 == 0 ? FolderNames.MARKER : FolderNames.INDEX;
            long at = name.equals(FolderNames.MARKER) ? gen.below(PAGE) : gen.below(3 * PAGE);
            OpeningScenarios.flip(life.folder, name, at);
            VerifyReport verified = verify(life);
            assertEquals(1, verified.problemsFound(), name + " " + at);
            assertEquals(ErrorCode.SNAPSHOT, verified.problems().get(0).code());
            life = next(life, false);
            // The stop was clean all the same where its marker says so.
            boolean isMarked = name.equals(FolderNames.INDEX);
            assertEquals(isMarked ? OpeningKind.CLEAN : OpeningKind.KILL, life.opened.kind(), name + " " + at);
            assertTrue(life.opened.report().notes().toString().contains("snapshot"));
            all(life, false);
        }
        // INDEX alone, marker alone.
        for (String gone : List.of(FolderNames.INDEX, FolderNames.MARKER)) {
            assertTrue(OpeningScenarios.stop(life, life.opened.nextPosition(), 1L << 40));
            life.folder.unlink(gone);
            life.folder.syncFolder(FolderNames.SNAPSHOT);
            life = next(life, false);
            assertEquals(gone.equals(FolderNames.INDEX) ? OpeningKind.CLEAN : OpeningKind.KILL, life.opened.kind());
            all(life, false);
        }
        life.close();
    }

    /** A snapshot of another time counts for nothing: here the catalog was committed after it. */
    @Test
    void anOldSnapshotIsNotUsed() {
        TestLife life = next(filled(4), false);
        assertTrue(OpeningScenarios.stop(life, life.opened.nextPosition(), 1L << 40));
        try (var batch = life.opened.catalog().begin()) {
            batch.putNamespace(
                    new io.orbitkv.index.NamespaceRow(OpeningScenarios.CHAT, new Gen(1).bytes(32), 2, new byte[0]));
            batch.commit();
        }
        life = next(life, false);
        assertEquals(OpeningKind.KILL, life.opened.kind());
        life.requireNone(first);
        assertEquals(0, life.opened.accounting().indexedBlocks());
        life.close();
    }

    @Test
    void verifyNamesWhatIsDamaged() {
        TestLife life = next(filled(5), false);
        var geometry = life.opened.geometry();
        OpeningScenarios.flip(life.folder, geometry, 4, 30);
        OpeningScenarios.flip(life.folder, geometry, 6, 17 * PAGE + 100);
        OpeningScenarios.flip(life.folder, geometry, 2, OpeningScenarios.SEGMENT_BYTES - 100);
        OpeningScenarios.flip(life.folder, geometry, 2, 2 * PAGE + 5);
        VerifyReport report = verify(life);
        List<ErrorCode> codes =
                report.problems().stream().map(Problem::code).sorted().toList();
        assertEquals(
                List.of(ErrorCode.SEGMENT_HEADER, ErrorCode.BATCH_HEADER, ErrorCode.FOOTER, ErrorCode.BLOCK_CHECKSUM),
                codes,
                report.problems().toString());
        assertEquals(1, report.wrongBlocks());
        assertEquals(40, report.blocks());
        assertTrue(report.problems().get(0).toString().contains("segments/000000000000.seg"));
        assertTrue(report.note().isEmpty() || report.note().contains("in use"), report.note());
        life.close();
    }

    /** Verifies beside a life that still holds the folder. */
    private VerifyReport verify(TestLife life) {
        try (DataFolder beside = ((SimulatedFolder) life.folder).reopen()) {
            VerifyReport report = Verify.run(beside, options);
            assertTrue(report.note().contains("in use"), report.note());
            return report;
        }
    }
}
