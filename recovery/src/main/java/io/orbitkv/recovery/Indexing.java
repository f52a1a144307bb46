package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.ListedBlocks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
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

    // ---- the piece: chains of blocks that follow one another and share their fate ----
    private ListedBlocks blocks;
    private final DeadReason[] fates = new DeadReason[PIECE_BLOCKS];
    private final Target[] targets = new Target[PIECE_BLOCKS];
    private final int[] epochs = new int[PIECE_BLOCKS];
    private final int[] firsts = new int[PIECE_BLOCKS];
    private final int[] lengths = new int[PIECE_BLOCKS];
    private final boolean[] hasParent = new boolean[PIECE_BLOCKS];
    private final long[] parentKey0s = new long[PIECE_BLOCKS];
    private final long[] parentTags = new long[PIECE_BLOCKS];
    private int chains;
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
        for (int chain = 0; chain < chains; chain++) {
            DeadReason fate = fates[chain] == null ? publish(chain) : fates[chain];
            if (fate != null) {
                bury(fate, lengths[chain], blocks.pages(firsts[chain], lengths[chain]));
            }
        }
        chains = 0;
    }

    private DeadReason publish(int chain) {
        Target target = targets[chain];
        int age = Integer.compareUnsigned(epochs[chain], target.epoch);
        if (age != 0) {
            return age < 0 ? DeadReason.CLEARED : DeadReason.UNKNOWN_NAMESPACE;
        }
        int first = firsts[chain];
        int end = first + lengths[chain];
        for (int at = first; at < end; ) {
            boolean follows = at > first || hasParent[chain];
            long parentKey0 = at > first ? blocks.key0s()[at - 1] : parentKey0s[chain];
            long parentTag = at > first ? blocks.tags()[at - 1] : parentTags[chain];
            int taken = publishNew(target.number, follows, parentKey0, parentTag, at, end - at);
            if (taken == 0) {
                publishKnown(target.number, follows, parentKey0, parentTag, at);
                taken = 1;
            }
            at += taken;
        }
        return null;
    }

    /** Publishes blocks up to the first whose key the index knows, or for which it has no room; how many. */
    private int publishNew(int number, boolean follows, long parentKey0, long parentTag, int from, int count) {
        int taken = index.recoverNew(
                number,
                follows,
                parentKey0,
                parentTag,
                blocks.key0s(),
                blocks.tags(),
                blocks.extents(),
                blocks.sizes(),
                from,
                count);
        indexedBlocks += taken;
        indexedPages += blocks.pages(from, taken);
        return taken;
    }

    private void publishKnown(int number, boolean follows, long parentKey0, long parentTag, int i) {
        long size = blocks.sizes()[i];
        int bytes = (int) size;
        DeadReason fate = publish(
                number,
                follows,
                parentKey0,
                parentTag,
                blocks.key0s()[i],
                blocks.tags()[i],
                blocks.extents()[i],
                bytes,
                (int) (size >>> Integer.SIZE),
                0);
        if (fate != null) {
            bury(fate, Extent.pages(bytes));
        }
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

    /** Has pages of the index ready for so many blocks. Any thread. */
    void makeReady(long listed, BooleanSupplier isEnded) {
        index.makeReady(listed, isEnded);
    }

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

    /**
     * Makes a piece of a segment's listings ready, at most {@link #PIECE_BLOCKS}; how many. It ends with a chain where it can,
     * for a run that gets its rest with the next piece would have to move.
     */
    int prepare(SegmentReader reader, int from) {
        int end = Math.min(reader.count(), from + PIECE_BLOCKS);
        boolean isDoubtful = reader.wrongCount() > 0 || quarantineSegments.get(reader.segment());
        blocks = reader.blocks();
        chains = 0;
        for (int i = from; i < end; i += lengths[chains++]) {
            int length = isDoubtful ? 1 : blocks.chain(i, Math.min(reader.count() - i, PrefixIndex.RECOVERED_MAX));
            if (i + length > end) {
                return i - from;
            }
            BlockListing block = reader.listing(i);
            MemoryRegion region = block.region();
            hasParent[chains] = block.hasParent();
            parentKey0s[chains] = region.getLong(block.parentOffset());
            parentTags[chains] = region.getLong(block.parentOffset() + TAG_IN_KEY);
            epochs[chains] = block.namespaceEpoch();
            firsts[chains] = i;
            lengths[chains] = length;
            Target target = target(block.namespaceId64());
            targets[chains] = target;
            fates[chains] = isDoubtful ? judge(reader, i, block.firstPage(), target) : fateIn(target);
            if (fates[chains] == null) {
                touched += index.touch(target.number, blocks.key0s(), i, lengths[chains]);
            }
        }
        return end - from;
    }

    /** Why a block is dead whatever the index says; null where it is to be published. */
    private DeadReason judge(SegmentReader reader, int i, int page, Target target) {
        if (quarantineSegments.get(reader.segment())
                && quarantine.contains(new Spot(reader.segment(), reader.useSequence(), page))) {
            return DeadReason.QUARANTINED;
        }
        // Wrong bytes are written down even of a block that nobody wants any more: from now on its segment counts as
        // durable, and whoever checks it must not take them for rot.
        if (reader.isWrong(i)) {
            if (found.size() < quarantinedMax) {
                long key0 = blocks.key0s()[i];
                found.add(new QuarantineRow(reader.segment(), reader.useSequence(), page, key0, nowMillis));
            }
            return DeadReason.WRONG_BYTES;
        }
        return fateIn(target);
    }

    private static DeadReason fateIn(Target target) {
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
