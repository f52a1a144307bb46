package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** Puts listed blocks into the index, or counts why not. Segments come in the order of their use-sequences. */
final class Indexing {
    /** Extents of an opening carry the first generation. */
    static final int GENERATION = 1;

    /**
     * Bytes of the catalog for each place in quarantine, so that they take at most an eighth of it. What is beyond is
     * dead for this life only; the checksum guards it in the next.
     */
    private static final int CATALOG_BYTES_A_PLACE = 512;

    /** A place in the log. */
    private record Spot(int segment, long useSequence, int page) {}

    private final PrefixIndex index;
    private final Notes notes;
    private final long nowMillis;
    private final Map<Long, OpenedNamespace> byId64 = new HashMap<>();
    private final List<OpenedNamespace> namespaces = new ArrayList<>();
    private final Set<Spot> quarantine = new HashSet<>();
    private final BitSet quarantineSegments = new BitSet();
    private final long quarantinedMax;
    private final List<QuarantineRow> found = new ArrayList<>();
    private final long[] dead = new long[DeadReason.values().length];
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer parent = new UnsafeBuffer(0, 0);
    private OpenedNamespace last;
    private long indexedBlocks;
    private long indexedPages;
    private long deadPages;
    private long lastBirth;

    Indexing(PrefixIndex index, CatalogContents catalog, Notes notes, long nowMillis) {
        this.index = index;
        this.notes = notes;
        this.nowMillis = nowMillis;
        for (NamespaceRow row : catalog.namespaces()) {
            OpenedNamespace opened = new OpenedNamespace(row, index.newNamespace());
            byId64.put(row.id64(), opened);
            namespaces.add(opened);
        }
        for (QuarantineRow row : catalog.quarantine()) {
            quarantine.add(new Spot(row.segment(), row.useSequence(), row.page()));
            if (row.segment() >= 0) {
                quarantineSegments.set(row.segment());
            }
        }
        this.quarantinedMax = catalog.mapBytes() / CATALOG_BYTES_A_PLACE - quarantine.size();
    }

    /** Takes all listings of a segment that was read. */
    void take(SegmentReader reader) {
        int wrong = 0;
        for (int i = 0; i < reader.count(); i++) {
            BlockListing block = reader.listing(i);
            lastBirth = Math.max(lastBirth, block.birth());
            DeadReason reason = judge(reader, i, block);
            if (reason != null) {
                bury(reason, block.pages());
                wrong += reason == DeadReason.WRONG_BYTES ? 1 : 0;
            }
        }
        if (wrong > 0) {
            notes.add(wrong + " of " + reader.count() + " blocks of segment " + reader.segment()
                    + " do not match their checksums and are not used");
        }
    }

    /** Why a block is dead; null when it was indexed. */
    private DeadReason judge(SegmentReader reader, int i, BlockListing block) {
        if (quarantineSegments.get(reader.segment())
                && quarantine.contains(new Spot(reader.segment(), reader.useSequence(), block.firstPage()))) {
            return DeadReason.QUARANTINED;
        }
        // Wrong bytes are written down even of a block that nobody wants any more: from now on its segment counts as
        // durable, and whoever checks it must not take them for rot.
        if (reader.isWrong(i)) {
            if (found.size() < quarantinedMax) {
                long key0 = block.region().getLong(block.offset());
                found.add(
                        new QuarantineRow(reader.segment(), reader.useSequence(), block.firstPage(), key0, nowMillis));
            }
            return DeadReason.WRONG_BYTES;
        }
        OpenedNamespace namespace = namespace(block.namespaceId64());
        if (namespace == null) {
            return DeadReason.UNKNOWN_NAMESPACE;
        }
        int age =
                Integer.compareUnsigned(block.namespaceEpoch(), namespace.row().epoch());
        if (age != 0) {
            return age < 0 ? DeadReason.CLEARED : DeadReason.UNKNOWN_NAMESPACE;
        }
        return index(reader.segment(), namespace.number(), block);
    }

    /** The namespace of an id; neighbours mostly share theirs, so the last one is looked at first. */
    private OpenedNamespace namespace(long id64) {
        if (last == null || last.row().id64() != id64) {
            last = byId64.get(id64);
        }
        return last;
    }

    private DeadReason index(int segment, int number, BlockListing block) {
        block.region().wrap(key, block.offset(), BlockListing.KEY_BYTES);
        DirectBuffer parentKey = null;
        if (block.hasParent()) {
            block.region().wrap(parent, block.parentOffset(), BlockListing.KEY_BYTES);
            parentKey = parent;
        }
        int replaced = index.replace(
                number,
                parentKey,
                0,
                key,
                0,
                block.storedBytes(),
                block.checksum(),
                Tier.NVME,
                Extent.pack(segment, block.firstPage(), GENERATION));
        if (replaced == PrefixIndex.REPLACE_FULL) {
            return DeadReason.INDEX_FULL;
        }
        if (replaced == PrefixIndex.REPLACED_NONE) {
            indexedBlocks++;
        } else {
            indexedPages -= Extent.pages(replaced);
            bury(DeadReason.SUPERSEDED, Extent.pages(replaced));
        }
        indexedPages += block.pages();
        return null;
    }

    private void bury(DeadReason reason, int pages) {
        dead[reason.ordinal()]++;
        deadPages += pages;
    }

    List<OpenedNamespace> namespaces() {
        return namespaces;
    }

    /** Places that were found wrong now. */
    List<QuarantineRow> found() {
        return found;
    }

    long indexedBlocks() {
        return indexedBlocks;
    }

    long indexedPages() {
        return indexedPages;
    }

    long deadPages() {
        return deadPages;
    }

    Map<DeadReason, Long> deadBlocks() {
        Map<DeadReason, Long> counts = new EnumMap<>(DeadReason.class);
        for (DeadReason reason : DeadReason.values()) {
            if (dead[reason.ordinal()] > 0) {
                counts.put(reason, dead[reason.ordinal()]);
            }
        }
        return counts;
    }

    /** The largest position that stands in the log. */
    long lastBirth() {
        return lastBirth;
    }
}
