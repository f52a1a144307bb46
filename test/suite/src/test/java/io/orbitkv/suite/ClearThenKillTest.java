package io.orbitkv.suite;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.CatalogRebuild;
import io.orbitkv.recovery.DeadReason;
import io.orbitkv.recovery.Inspection;
import io.orbitkv.recovery.OpeningOptions;
import io.orbitkv.store.KvStore;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: what was cleared stays cleared, whatever comes: a kill at once, blocks that are appended again meanwhile, a catalog
 * that is lost and made again. All other blocks are there.
 * Method: a process of its own clears a family in the middle of its work and is killed when it has said so.
 */
class ClearThenKillTest {
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void promise03_noBlockOfAClearedFamilyComesBack(boolean loseCatalog) throws Exception {
        try (TestFolders folders = new TestFolders()) {
            Path work = folders.make("clear");
            Path data = work.resolve("data");
            List<String> kept;
            try (Owner owner = new Owner(work, data.toString(), "clear")) {
                owner.readTo("READY");
                kept = owner.readTo("CLEARED");
                owner.kill();
            }
            assertTrue(deadByClear(data) > 0, "nothing of the cleared family is in the log: the test proves nothing");
            if (loseCatalog) {
                loseAndRebuild(data);
            }
            try (KvStore store = OwnerChild.whole(KvStore.open(OwnerChild.options(data)));
                    HostFolder folder = HostFolder.open(data);
                    SegmentHeaders headers = new SegmentHeaders(List.of(folder), store.logSegmentBytes())) {
                NumberedBlocks cleared = new NumberedBlocks(store, OwnerChild.CLEARED);
                for (int i = 0; i < OwnerChild.BLOCKS; i++) {
                    assertEquals(NumberedBlocks.Found.NOTHING, cleared.look(i), "cleared block " + i);
                }
                requireKept(new NumberedBlocks(store, OwnerChild.KEPT), kept, headers);
            }
        }
    }

    private static void requireKept(NumberedBlocks blocks, List<String> lines, SegmentHeaders headers) {
        int found = 0;
        for (String line : lines) {
            String[] words = line.split(" ");
            int number = Integer.parseInt(words[1]);
            boolean reused = headers.useSequence(Integer.parseInt(words[2])) != Long.parseLong(words[3]);
            NumberedBlocks.Found look = blocks.look(number);
            assertTrue(
                    look == NumberedBlocks.Found.ITS_BYTES || (reused && look == NumberedBlocks.Found.NOTHING),
                    () -> line + " is " + look + ", its segment " + (reused ? "was" : "was not") + " reused");
            found += look == NumberedBlocks.Found.ITS_BYTES ? 1 : 0;
        }
        int least = OwnerChild.BLOCKS / 4;
        assertTrue(found > least, found + " of " + lines.size() + " other blocks: too few to prove anything");
    }

    private static long deadByClear(Path data) {
        try (HostFolder folder = HostFolder.open(data)) {
            return Inspection.of(DataFolders.of(folder), OpeningOptions.of(0))
                    .store(false)
                    .accounting()
                    .dead(DeadReason.CLEARED);
        }
    }

    private static void loseAndRebuild(Path data) throws IOException {
        try (FileChannel file =
                FileChannel.open(data.resolve("catalog/data.mdb"), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            for (long page = 2; page < 64; page++) {
                file.write(ByteBuffer.wrap(new byte[] {-1, -1, -1, -1}), page * 4096 + 8);
            }
        }
        OrbitKvException refused = assertThrows(
                OrbitKvException.class,
                () -> KvStore.open(OwnerChild.options(data)).close());
        assertEquals(ErrorCode.CATALOG, refused.code());
        try (HostFolder folder = HostFolder.open(data)) {
            CatalogRebuild.Report report = CatalogRebuild.run(DataFolders.of(folder), OpeningOptions.of(0), true);
            assertEquals(1, report.kept().size());
            assertTrue(report.deadBlocks().get(DeadReason.CLEARED) > 0, report.toString());
        }
    }
}
