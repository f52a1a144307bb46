package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.DataFolder;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.StorageFile;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads a whole log as docs/format.md says and keeps what counts: a second reader beside recovery's. */
final class LogWalk {
    /** A block that was found, by position. */
    record Found(int segment, long use, int page, int bytes, boolean isWhole, boolean inFooter) {}

    final Map<Long, Found> blocks = new HashMap<>();
    final Map<Integer, Long> uses = new HashMap<>();
    /** Every copy of each block: used blocks are appended again. */
    final Map<Long, List<Found>> copies = new HashMap<>();

    int footers;
    int segmentsWithBatches;

    /** All of a log that was stopped or killed. */
    LogWalk(DataFolder folder, LogGeometry geometry) {
        this(folder, geometry, true);
    }

    /** After a power loss a footer may be there without batches that it lists: neither was durable then. */
    LogWalk(DataFolder folder, LogGeometry geometry, boolean isComplete) {
        BlockListing listing = new BlockListing();
        try (MemoryRegion segment = Listings.pages(geometry.segmentPages())) {
            for (int number = 0; number < geometry.segments(); number++) {
                try (StorageFile file = folder.open(LogGeometry.fileName(geometry.file(number)), false)) {
                    file.read(geometry.fileOffset(number), segment, 0, geometry.segmentBytes());
                }
                SegmentHeader header = new SegmentHeader(geometry);
                if (header.decode(segment, 0, number) != Verdict.VALID) {
                    continue;
                }
                long use = header.useSequence();
                uses.put(number, use);
                Footer footer = new Footer(geometry);
                long last = geometry.segmentBytes() - 4096L;
                boolean sealed = footer.decodeTrailer(segment, last, use) == Verdict.VALID
                        && footer.decode(segment, footer.firstPage() * 4096L, footer.pages(), number, use)
                                == Verdict.VALID;
                int listed = walkBatches(geometry, segment, number, use, sealed);
                segmentsWithBatches += listed > 0 ? 1 : 0;
                if (sealed) {
                    footers++;
                    assertTrue(listed <= footer.count() && (listed == footer.count() || !isComplete));
                    for (int i = 0; i < listed; i++) {
                        listing.wrap(segment, footer.firstPage() * 4096L + Footer.listingOffset(i));
                        int page = listing.firstPage();
                        assertTrue(copies.get(listing.birth()).stream().anyMatch(found -> found.page() == page));
                    }
                }
            }
        }
    }

    private int walkBatches(LogGeometry geometry, MemoryRegion segment, int number, long use, boolean sealed) {
        BatchHeader batch = new BatchHeader(geometry);
        BlockListing listing = new BlockListing();
        BlockChecksum checksum = new BlockChecksum();
        int listed = 0;
        int page = SegmentHeader.PAGES;
        for (int sequence = 0; page < geometry.segmentPages(); sequence++) {
            if (batch.decode(segment, page * 4096L, number, use, sequence, page) != Verdict.VALID) {
                break;
            }
            for (int i = 0; i < batch.count(); i++) {
                listing.wrap(segment, page * 4096L + BatchHeader.listingOffset(i));
                checksum.reset()
                        .update(segment, listing.offset(), BlockListing.KEY_BYTES)
                        .update(segment, listing.firstPage() * 4096L, listing.storedBytes());
                Found found = new Found(
                        number,
                        use,
                        listing.firstPage(),
                        listing.storedBytes(),
                        checksum.value() == listing.checksum(),
                        sealed);
                blocks.put(listing.birth(), found);
                copies.computeIfAbsent(listing.birth(), birth -> new ArrayList<>())
                        .add(found);
            }
            listed += batch.count();
            page += BatchHeader.PAGES + batch.payloadPages();
        }
        return listed;
    }
}
