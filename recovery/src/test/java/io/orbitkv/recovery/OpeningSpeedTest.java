package io.orbitkv.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.TestFolders;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Footer;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.SegmentHeader;
import java.nio.file.Path;
import org.agrona.concurrent.SystemNanoClock;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Goal: an opening takes about as long as promise 4 allows, whether it scans or reads a snapshot.
 *
 * <p>Method: a log of footers without payloads, some 100,000 small blocks; opened after a kill and after a clean stop.
 * The bound is generous, since other work may share the machine; the figures are logged.
 */
final class OpeningSpeedTest {
    private static final Logger LOG = LoggerFactory.getLogger(OpeningSpeedTest.class);
    private static final int SEGMENTS = Integer.getInteger("orbitkv.speed.segments", 100);
    private static final int BLOCKS = 960;
    private static final long NANOS_A_BLOCK_MAX = 100_000;

    @Test
    void anOpeningIsQuick() {
        try (TestFolders folders = new TestFolders()) {
            Path path = folders.make("speed");
            OpeningOptions options =
                    OpeningOptions.of((SEGMENTS + 16L) * (4L << 20) * 33 / 32).withSegmentBytes(4 << 20);
            open(path, options).close();
            long blocks = (long) SEGMENTS * BLOCKS;
            try (Opened life = open(path, options)) {
                assertEquals(blocks, life.folder.accounting().indexedBlocks());
                log("scan", life, blocks);
                assertTrue(CleanStop.write(
                        life.folder,
                        life.folder.namespaces(),
                        life.folder.nextPosition(),
                        life.folder.logState().nextUseSequence(),
                        life.folder.budget().snapshotBytes(),
                        WindowProbe.NONE));
            }
            try (Opened life = open(path, options)) {
                assertEquals(OpeningKind.CLEAN, life.folder.kind());
                assertEquals(blocks, life.folder.accounting().indexedBlocks());
                log("snapshot", life, blocks);
            }
        }
    }

    private static void log(String what, Opened life, long blocks) {
        long nanos = life.folder.report().nanos();
        LOG.info(
                "{} of {} blocks: {} ms, {} ns a block, {}",
                what,
                blocks,
                nanos / 1_000_000,
                nanos / blocks,
                life.folder.fill().times());
        assertTrue(nanos / blocks < NANOS_A_BLOCK_MAX, what + " took " + nanos + " ns");
    }

    private static void fill(HostFolder folder, LogGeometry geometry) {
        int pages = Footer.pagesFor(BLOCKS);
        Gen gen = new Gen(1);
        BlockListing listing = new BlockListing();
        try (MemoryRegion memory = MemoryRegion.anonymous((pages + 1L) * 4096, PageKind.SMALL, MemoryPurpose.TOOL)) {
            byte[] parent = gen.bytes(32);
            for (int segment = 0; segment < SEGMENTS; segment++) {
                try (StorageFile file = folder.open(LogGeometry.fileName(geometry.file(segment)), true)) {
                    new SegmentHeader(geometry).encode(memory, 0, segment, segment + 1);
                    file.write(geometry.fileOffset(segment), memory, 0, 4096);
                    for (int i = 0; i < BLOCKS; i++) {
                        byte[] key = gen.bytes(32);
                        listing.wrap(memory, Footer.listingOffset(i))
                                .clear()
                                .key(key, 0)
                                .parent(parent, 0);
                        listing.namespaceId64(5)
                                .namespaceEpoch(1)
                                .birth(1)
                                .storedBytes(100)
                                .logicalBytes(100);
                        listing.firstPage(2 + i + i / 38);
                        parent = key;
                    }
                    new Footer(geometry).encode(memory, 0, segment, segment + 1, BLOCKS, (BLOCKS + 37) / 38, BLOCKS);
                    file.write(geometry.fileOffset(segment, geometry.segmentPages() - pages), memory, 0, pages * 4096);
                }
            }
        }
    }

    private record Opened(HostFolder host, OpenedFolder folder, Generations a, Generations b) implements AutoCloseable {
        @Override
        public void close() {
            if (folder.kind() == OpeningKind.FRESH) {
                try (var batch = folder.catalog().begin()) {
                    batch.putNamespace(new NamespaceRow(5, new byte[32], 1, new byte[0]));
                    batch.commit();
                }
                fill(host, folder.geometry());
            }
            folder.catalog().close();
            folder.index().close();
            a.close();
            b.close();
            host.close();
        }
    }

    private static Opened open(Path path, OpeningOptions options) {
        HostFolder host = HostFolder.open(path);
        Generations one = new Generations(1);
        Generations[] nvme = new Generations[1];
        OpenedFolder opened = Opening.open(
                host,
                options,
                geometry -> {
                    nvme[0] = new Generations(geometry.segments());
                    return new PrefixIndex((long) SEGMENTS * BLOCKS + 1000, one, nvme[0]);
                },
                SystemNanoClock.INSTANCE,
                WindowProbe.NONE);
        opened.fill().run();
        return new Opened(host, opened, one, nvme[0]);
    }
}
