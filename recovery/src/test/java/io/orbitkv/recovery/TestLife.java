package io.orbitkv.recovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.index.Match;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.tiers.LogGeometry;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.zip.CRC32C;
import org.agrona.concurrent.SystemNanoClock;
import org.agrona.concurrent.UnsafeBuffer;

/** One life of a store in a test: a folder that was opened, with what an opening needs around it. */
final class TestLife implements AutoCloseable {
    static final long BLOCKS_MAX = 20_000;

    final DataFolder folder;
    final OpenedFolder opened;
    private final List<AutoCloseable> toClose = new ArrayList<>();
    private Generations generations;

    TestLife(DataFolder folder, OpeningOptions options) {
        this(DataFolders.of(folder), options, WindowProbe.NONE);
    }

    /** A life in several folders; {@link #folder} is the first that is given. */
    TestLife(DataFolders folders, OpeningOptions options, WindowProbe probe) {
        this.folder = folders.get(0);
        boolean good = false;
        try {
            this.opened = Opening.open(folders, options, this::index, SystemNanoClock.INSTANCE, probe);
            fill();
            good = true;
        } finally {
            if (!good) {
                closeRest();
            }
        }
        assertTrue(opened.accounting().isWhole(), opened.accounting().toString());
        assertEquals(opened.index().blocks(), opened.accounting().indexedBlocks());
    }

    /** Fills the index to its end; whoever dies on the way leaves what a store would have left. */
    private void fill() {
        boolean good = false;
        try {
            opened.fill().run();
            good = true;
        } finally {
            if (!good) {
                opened.fill().close();
                opened.catalog().close();
                opened.index().close();
            }
        }
    }

    private PrefixIndex index(LogGeometry geometry) {
        Generations host = new Generations(1);
        Generations nvme = new Generations(geometry.segments());
        toClose.add(host);
        toClose.add(nvme);
        generations = nvme;
        return new PrefixIndex(BLOCKS_MAX, host, nvme);
    }

    /** Those of the NVMe tier. */
    Generations generations() {
        return generations;
    }

    /** The number of a namespace in the index. */
    int number(long id64) {
        return opened.namespaces().stream()
                .filter(namespace -> namespace.row().id64() == id64)
                .findFirst()
                .orElseThrow()
                .number();
    }

    /** Where the index says that a block lies; {@link Extent#NONE} when it does not know it. */
    long extent(long id64, long blockNumber) {
        Match match = new Match(1);
        UnsafeBuffer key = new UnsafeBuffer(TestBlock.key(blockNumber));
        int found = opened.index().match(number(id64), key, 0, 1, match);
        return found == 0 ? Extent.NONE : match.extent(Tier.NVME, 0);
    }

    /** Whether a block is known and its bytes on the drive are its own. */
    boolean has(TestBlock block) {
        long extent = extent(block.namespaceId64(), block.number());
        return extent != Extent.NONE && readsBack(block, extent);
    }

    private boolean readsBack(TestBlock block, long extent) {
        LogGeometry geometry = opened.geometry();
        int bytes = block.pages() * MemoryRegion.PAGE_BYTES;
        try (StorageFile file = folder.open(LogGeometry.fileName(geometry.file(Extent.segment(extent))), false);
                MemoryRegion memory = MemoryRegion.anonymous(bytes, PageKind.SMALL, MemoryPurpose.TOOL)) {
            file.read(geometry.fileOffset(Extent.segment(extent), Extent.page(extent)), memory, 0, bytes);
            byte[] payload = new byte[block.bytes()];
            memory.copyTo(0, payload, 0, payload.length);
            CRC32C crc = new CRC32C();
            crc.update(block.key());
            crc.update(payload);
            return (int) crc.getValue() == block.checksum();
        }
    }

    void requireAll(Collection<TestBlock> blocks) {
        for (TestBlock block : blocks) {
            assertTrue(has(block), () -> block + " is lost; " + opened.accounting() + opened.report());
        }
    }

    void requireNone(Collection<TestBlock> blocks) {
        for (TestBlock block : blocks) {
            assertEquals(Extent.NONE, extent(block.namespaceId64(), block.number()), block::toString);
        }
    }

    private void closeRest() {
        toClose.forEach(part -> {
            try {
                part.close();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
    }

    /** Ends the process's memory; what is on the drive is whatever it is. */
    @Override
    public void close() {
        opened.catalog().close();
        opened.index().close();
        closeRest();
        folder.close();
    }
}
