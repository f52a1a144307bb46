package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.tiers.BlockListing;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongPredicate;
import org.agrona.collections.Long2ObjectHashMap;

/**
 * Puts listed blocks into the index, or counts why not. Segments come in the order of their use-sequences, in pieces: a
 * piece is made ready without a lock ({@link #prepare}), then published under the store's writer lock ({@link #publish}),
 * which so is held for microseconds.
 */
final class Indexing {
    /** Extents of an opening carry the first generation. */
    static final int GENERATION = 1;

    /** Blocks of a piece: some 20 µs under the writer lock. */
    static final int PIECE_BLOCKS = 128;

    /** Longest run that the index keeps together. */
    private static final int RUN_BLOCKS = 64;

    private static final int TAG_IN_KEY = 8;

    /**
     * Bytes of the catalog for each place in quarantine, so that they take at most an eighth of it. What is beyond is
     * dead for this life only; the checksum guards it in the next.
     */
    private static final int CATALOG_BYTES_A_PLACE = 512;

    /** A place in the log. */
    private record Spot(int segment, long useSequence, int page) {}

    /** Under which number blocks of a namespace are indexed; changes with a clear, under the writer lock. */
    private static final class Target {
        final int epochAtOpening;
        int epoch;
        int number;

        Target(int epoch, int number) {
            this.epochAtOpening = epoch;
            this.epoch = epoch;
            this.number = number;
        }
    }

    private final PrefixIndex index;
    private final long nowMillis;
    private final Long2ObjectHashMap<Target> byId64 = new Long2ObjectHashMap<>();
    private final List<OpenedNamespace> namespaces = new ArrayList<>();
    private final Set<Spot> quarantine = new HashSet<>();
    private final BitSet quarantineSegments = new BitSet();
    private final long quarantinedMax;
    private final List<QuarantineRow> found = new ArrayList<>();

    /** Segments of the log that were taken so far: their blocks are older than those to come. */
    private final BitSet taken = new BitSet();

    private final LongPredicate older = this::isOlder;

    // ---- the piece ----
    private final DeadReason[] fates = new DeadReason[PIECE_BLOCKS];
    private final Target[] targets = new Target[PIECE_BLOCKS];
    private final boolean[] hasParent = new boolean[PIECE_BLOCKS];
    private final long[] parentKey0s = new long[PIECE_BLOCKS];
    private final long[] parentTags = new long[PIECE_BLOCKS];
    private final long[] key0s = new long[PIECE_BLOCKS];
    private final long[] tags = new long[PIECE_BLOCKS];
    private final long[] extents = new long[PIECE_BLOCKS];
    private final int[] stored = new int[PIECE_BLOCKS];
    private final int[] checksums = new int[PIECE_BLOCKS];
    private final int[] epochs = new int[PIECE_BLOCKS];
    private int pieceBlocks;
    private long touched;

    private final long[] dead = new long[DeadReason.values().length];
    private Target last;
    private long lastId64;
    private long indexedBlocks;
    private long indexedPages;
    private long deadPages;

    Indexing(PrefixIndex index, CatalogContents catalog, long nowMillis) {
        this.index = index;
        this.nowMillis = nowMillis;
        for (NamespaceRow row : catalog.namespaces()) {
            OpenedNamespace opened = new OpenedNamespace(row, index.newNamespace());
            byId64.put(row.id64(), new Target(row.epoch(), opened.number()));
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

    // ---- under the writer lock ----

    /** A clear has given a namespace another epoch and number: what is still to come of it is dead. */
    void cleared(long id64, int epoch, int number) {
        Target target = byId64.get(id64);
        if (target != null) {
            target.epoch = epoch;
            target.number = number;
        }
    }

    /** Publishes the piece that was made ready. */
    void publish() {
        int chainEnd = 0;
        for (int i = 0; i < pieceBlocks; i++) {
            if (fates[i] == null && i >= chainEnd) {
                int chain = chainFrom(i);
                index.expect(chain);
                chainEnd = i + chain;
            }
            DeadReason fate = fates[i] == null ? publish(i) : fates[i];
            if (fate != null) {
                bury(fate, Extent.pages(stored[i]));
            }
        }
        pieceBlocks = 0;
    }

    /** How many blocks from here on follow one another, within the piece. */
    private int chainFrom(int first) {
        int end = Math.min(pieceBlocks, first + RUN_BLOCKS);
        int i = first + 1;
        while (i < end && fates[i] == null && hasParent[i] && parentKey0s[i] == key0s[i - 1]) {
            i++;
        }
        return i - first;
    }

    private DeadReason publish(int i) {
        Target target = targets[i];
        int age = Integer.compareUnsigned(epochs[i], target.epoch);
        if (age != 0) {
            return age < 0 ? DeadReason.CLEARED : DeadReason.UNKNOWN_NAMESPACE;
        }
        return publish(
                target.number,
                hasParent[i],
                parentKey0s[i],
                parentTags[i],
                key0s[i],
                tags[i],
                extents[i],
                stored[i],
                checksums[i],
                0);
    }

    private DeadReason publish(
            int number,
            boolean follows,
            long parentKey0,
            long parentTag,
            long key0,
            long tag,
            long extent,
            int bytes,
            int checksum,
            int depth) {
        int answer =
                index.recover(number, follows, parentKey0, parentTag, key0, tag, extent, bytes, checksum, depth, older);
        switch (answer) {
            case PrefixIndex.RECOVER_FULL:
                return DeadReason.INDEX_FULL;
            case PrefixIndex.RECOVER_KEPT:
                return DeadReason.SUPERSEDED;
            case PrefixIndex.RECOVERED:
                break;
            default:
                indexedBlocks--;
                indexedPages -= Extent.pages(answer);
                bury(DeadReason.SUPERSEDED, Extent.pages(answer));
        }
        indexedBlocks++;
        indexedPages += Extent.pages(bytes);
        return null;
    }

    /** Takes a row of a snapshot. */
    void takeRow(
            long id64,
            int epoch,
            boolean continuesRun,
            long lastKey0,
            long lastTag,
            long key0,
            long tag,
            long extent,
            int bytes,
            int checksum,
            int depth) {
        Target target = target(id64);
        DeadReason fate = target.epoch != epoch
                ? DeadReason.CLEARED
                : publish(target.number, continuesRun, lastKey0, lastTag, key0, tag, extent, bytes, checksum, depth);
        if (fate != null) {
            bury(fate, Extent.pages(bytes));
        }
    }

    /** Whether a later copy of a block takes the place of the one at an extent. */
    private boolean isOlder(long extent) {
        return Extent.generation(extent) == GENERATION && taken.get(Extent.segment(extent));
    }

    // ---- without the lock ----

    /** A segment's blocks are about to come. */
    void begin(int segment) {
        taken.set(segment);
    }

    /** Starts over, after a snapshot that proved bad: what it brought stays until the log says otherwise. */
    void startOver() {
        Arrays.fill(dead, 0);
        indexedBlocks = 0;
        indexedPages = 0;
        deadPages = 0;
    }

    /** Makes a piece of a segment's listings ready, at most {@link #PIECE_BLOCKS}; how many. */
    int prepare(SegmentReader reader, int from) {
        pieceBlocks = Math.min(PIECE_BLOCKS, reader.count() - from);
        for (int i = 0; i < pieceBlocks; i++) {
            BlockListing block = reader.listing(from + i);
            MemoryRegion region = block.region();
            long at = block.offset();
            key0s[i] = region.getLong(at);
            tags[i] = region.getLong(at + TAG_IN_KEY);
            hasParent[i] = block.hasParent();
            parentKey0s[i] = region.getLong(block.parentOffset());
            parentTags[i] = region.getLong(block.parentOffset() + TAG_IN_KEY);
            extents[i] = Extent.pack(reader.segment(), block.firstPage(), GENERATION);
            stored[i] = block.storedBytes();
            checksums[i] = block.checksum();
            epochs[i] = block.namespaceEpoch();
            Target target = target(block.namespaceId64());
            targets[i] = target;
            fates[i] = judge(reader, from + i, block.firstPage(), key0s[i], target);
        }
        touch();
        return pieceBlocks;
    }

    /** A loop of its own and as short as can be: so that many cache misses are under way at once. */
    private void touch() {
        long sum = 0;
        for (int i = 0; i < pieceBlocks; i++) {
            if (fates[i] == null) {
                sum += index.touch(targets[i].number, key0s[i]);
            }
        }
        touched += sum;
    }

    /** Why a block is dead whatever the index says; null where it is to be published. */
    private DeadReason judge(SegmentReader reader, int i, int page, long key0, Target target) {
        if (quarantineSegments.get(reader.segment())
                && quarantine.contains(new Spot(reader.segment(), reader.useSequence(), page))) {
            return DeadReason.QUARANTINED;
        }
        // Wrong bytes are written down even of a block that nobody wants any more: from now on its segment counts as
        // durable, and whoever checks it must not take them for rot.
        if (reader.isWrong(i)) {
            if (found.size() < quarantinedMax) {
                found.add(new QuarantineRow(reader.segment(), reader.useSequence(), page, key0, nowMillis));
            }
            return DeadReason.WRONG_BYTES;
        }
        return target == null ? DeadReason.UNKNOWN_NAMESPACE : null;
    }

    /** The target of a namespace; neighbours mostly share theirs, so the last one is looked at first. */
    private Target target(long id64) {
        if (last == null || lastId64 != id64) {
            last = byId64.get(id64);
            lastId64 = id64;
        }
        return last;
    }

    /** Whether a namespace had an epoch when the folder was opened. */
    boolean knew(long id64, int epoch) {
        Target target = target(id64);
        return target != null && target.epochAtOpening == epoch;
    }

    /** The rest of a segment that was given up meanwhile. */
    void skip(SegmentReader reader, int from) {
        for (int i = from; i < reader.count(); i++) {
            bury(DeadReason.EVICTED, reader.listing(i).pages());
        }
    }

    /** Blocks that are dead for a reason that was found elsewhere. */
    void bury(DeadReason reason, long blocks, long pages) {
        dead[reason.ordinal()] += blocks;
        deadPages += pages;
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

    /** What {@link PrefixIndex#touch} answered, so that it is not optimised away. */
    long touched() {
        return touched;
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
}
