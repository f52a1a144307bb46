package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Family;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.CatalogRebuild;
import io.orbitkv.recovery.ExportResult;
import io.orbitkv.recovery.FamilyFile;
import io.orbitkv.recovery.Inspection;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.recovery.StoreInfo;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import io.orbitkv.store.KvStore;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: tools that look are right beside a process that saves, evicts and clears meanwhile; tools that write refuse; and
 * the store comes to no harm by either.
 * Method: a process of its own that is never idle, killed at the end; then a whole verification.
 */
class ToolsBesideOwnerTest {
    private static final int ROUNDS = 3;

    @Test
    void lookingHarmsNobody() throws Exception {
        try (TestFolders folders = new TestFolders()) {
            Path work = folders.make("beside");
            Path data = work.resolve("data");
            try (Owner owner = new Owner(work, data.toString())) {
                owner.readTo("READY");
                for (int round = 0; round < ROUNDS; round++) {
                    look(data);
                    verify(data);
                    export(data);
                    refuse(data);
                    assertTrue(owner.isAlive(), "the owner came to harm");
                }
                owner.kill();
            }
            try (KvStore store = OwnerChild.whole(KvStore.open(OwnerChild.options(data)))) {
                assertTrue(store.openReport().accounting().isWhole());
                NumberedBlocks kept = new NumberedBlocks(store, OwnerChild.KEPT);
                for (int i = 0; i < OwnerChild.BLOCKS; i++) {
                    assertTrue(kept.look(i) != NumberedBlocks.Found.OTHER_BYTES);
                }
                assertEquals(0, store.stats().corruptBlocks());
            }
            try (HostFolder folder = HostFolder.open(data)) {
                VerifyReport report = Verify.run(folder, OpeningOptions.of(0));
                assertTrue(report.isClean(), () -> report.problems().toString());
            }
        }
    }

    private static void look(Path data) {
        try (HostFolder folder = HostFolder.open(data)) {
            Inspection inspection = Inspection.of(DataFolders.of(folder), OpeningOptions.of(0));
            assertTrue(inspection.owner().contains("is held by process"), inspection.owner());
            StoreInfo info = inspection.store(true);
            assertTrue(info.isInUse());
            assertTrue(info.accounting().isWhole(), info.accounting().toString());
            inspection.segment(3);
            Family family = NumberedBlocks.family(OwnerChild.KEPT);
            byte[] keys = new byte[32 * 10];
            assertEquals(
                    10, inspection.explain(family, new UnsafeBuffer(keys), 10).size());
        }
    }

    private static void verify(Path data) {
        try (HostFolder folder = HostFolder.open(data)) {
            VerifyReport report = Verify.run(folder, OpeningOptions.of(0));
            assertTrue(report.note().contains("in use"), report.note());
        }
    }

    private static void export(Path data) throws IOException {
        try (HostFolder folder = HostFolder.open(data)) {
            Inspection inspection = Inspection.of(DataFolders.of(folder), OpeningOptions.of(0));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ExportResult result = inspection.export(NumberedBlocks.family(OwnerChild.KEPT), out);
            FamilyFile.Reader reader = new FamilyFile.Reader(new ByteArrayInputStream(out.toByteArray()), "memory");
            long blocks = 0;
            for (FamilyFile.Block block = reader.next(); block != null; block = reader.next()) {
                assertTrue(block.matches());
                blocks++;
            }
            assertEquals(result.blocks(), blocks);
            assertTrue(blocks > 0);
        }
    }

    private static void refuse(Path data) {
        try (HostFolder folder = HostFolder.open(data)) {
            assertEquals(
                    ErrorCode.FOLDER_IN_USE,
                    assertThrows(
                                    OrbitKvException.class,
                                    () -> Verify.repair(DataFolders.of(folder), OpeningOptions.of(0), steps -> {}))
                            .code());
        }
        try (HostFolder folder = HostFolder.open(data)) {
            assertEquals(
                    ErrorCode.FOLDER_IN_USE,
                    assertThrows(
                                    OrbitKvException.class,
                                    () -> CatalogRebuild.run(DataFolders.of(folder), OpeningOptions.of(0), true))
                            .code());
        }
    }
}
