package io.orbitkv.recovery;

import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.index.SegmentRow;
import io.orbitkv.tiers.BlockListing;
import io.orbitkv.tiers.Verdict;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Finds every place of the log that lists certain keys, in whatever namespace, and says what each is worth. Reads listings
 * only; memory follows the number of keys asked for, not the size of the store.
 */
final class BlockSearch {
    /** Places of one key that are kept; a key that was re-appended often has more, all of them dead but one. */
    private static final int PLACES_MAX = 64;

    /** A key as two numbers of the four that it has, which is enough to look it up, and all four to be sure. */
    record Key(long first, long second, long third, long fourth) {
        static Key of(BlockListing block) {
            long at = block.offset();
            return new Key(
                    block.region().getLong(at),
                    block.region().getLong(at + 8),
                    block.region().getLong(at + 16),
                    block.region().getLong(at + 24));
        }

        static Key of(org.agrona.DirectBuffer keys, int offset) {
            return new Key(
                    keys.getLong(offset),
                    keys.getLong(offset + 8),
                    keys.getLong(offset + 16),
                    keys.getLong(offset + 24));
        }
    }

    /** A place in the log. */
    private record Spot(int segment, int page) {}

    private final StoreView view;
    private final OpeningOptions options;
    private final Map<Long, Integer> epochs = new HashMap<>();
    private final Set<List<Long>> quarantine = new HashSet<>();
    private final Set<Integer> freeAfterStop = new HashSet<>();
    private final BitSet inUse = new BitSet();
    private final Map<Key, List<BlockPlace>> places = new HashMap<>();

    BlockSearch(StoreView view, OpeningOptions options) {
        this.view = view;
        this.options = options;
        for (NamespaceRow row : view.catalog().namespaces()) {
            epochs.put(row.id64(), row.epoch());
        }
        for (SegmentRow row : view.catalog().segments()) {
            inUse.set(row.segment(), row.state() != SegmentRow.State.FREE && row.state() != SegmentRow.State.ABSENT);
        }
        for (QuarantineRow row : view.catalog().quarantine()) {
            quarantine.add(List.of((long) row.segment(), row.useSequence(), (long) row.page()));
        }
    }

    /**
     * Searches the log.
     *
     * @param keys which keys
     * @return the places of each that has any, newest first; at most one of each namespace is indexed
     */
    Map<Key, List<BlockPlace>> find(Set<Key> keys) {
        try (LogView log = new LogView(view, options);
                ReaderPool readers = new ReaderPool(view.folders(), view.geometry(), options.readThreads())) {
            boolean clean = log.snapshotCounts();
            if (clean) {
                for (SegmentRow row : view.catalog().segments()) {
                    if (row.state() == SegmentRow.State.FREE) {
                        freeAfterStop.add(row.segment());
                    }
                }
            }
            int[] present = view.segmentsPresent();
            int[] done = new int[1];
            readers.each(present, this::read, reader -> {
                take(reader, keys);
                done[0]++;
                options.progress().onProgress("searching segments", done[0], present.length);
            });
            supersede();
            if (clean) {
                dropEvicted(log.marker());
            }
        }
        return places;
    }

    private void read(SegmentReader reader, int segment) {
        Verdict header = reader.readHeader(segment);
        long use = reader.useSequence();
        if (use == 0 && (header == Verdict.TORN || header == Verdict.MALFORMED || header == Verdict.ABSENT)) {
            use = header == Verdict.ABSENT && reader.isZeroHeader() && !inUse.get(segment)
                    ? 0
                    : reader.useBehindHeader(segment);
            use = use < view.catalog().counter(CatalogCounter.NEXT_USE_SEQUENCE) ? use : 0;
        }
        if (use == 0) {
            reader.begin(segment, 0);
            return;
        }
        reader.read(segment, use);
        if (reader.count() == 0 && reader.footerVerdict() == Verdict.OTHER_USE) {
            // Put to use again, and nothing written yet: the footer that is left says what was there before.
            reader.readOldFooter(segment, use);
        }
    }

    private void take(SegmentReader reader, Set<Key> keys) {
        for (int i = 0; i < reader.count(); i++) {
            BlockListing block = reader.listing(i);
            Key key = Key.of(block);
            if (keys.contains(key)) {
                BlockPlace place =
                        BlockPlace.of(view, reader.segment(), reader.useSequence(), block, judge(reader, block));
                List<BlockPlace> all = places.computeIfAbsent(key, k -> new ArrayList<>());
                if (all.size() < PLACES_MAX || place.state() == BlockState.INDEXED) {
                    all.add(place);
                }
            }
        }
    }

    private BlockState judge(SegmentReader reader, BlockListing block) {
        if (reader.isStale()) {
            return BlockState.STALE_USE;
        }
        if (freeAfterStop.contains(reader.segment())) {
            return BlockState.EVICTED;
        }
        if (quarantine.contains(List.of((long) reader.segment(), reader.useSequence(), (long) block.firstPage()))) {
            return BlockState.QUARANTINED;
        }
        Integer epoch = epochs.get(block.namespaceId64());
        if (epoch == null) {
            return BlockState.UNKNOWN_NAMESPACE;
        }
        int age = Integer.compareUnsigned(block.namespaceEpoch(), epoch);
        return age == 0 ? BlockState.INDEXED : age < 0 ? BlockState.CLEARED : BlockState.UNKNOWN_NAMESPACE;
    }

    /** Of the places of a key in one namespace, that of the last use counts, in one use the last. */
    private void supersede() {
        Comparator<BlockPlace> newestFirst = Comparator.comparingLong(BlockPlace::useSequence)
                .thenComparingInt(BlockPlace::page)
                .reversed();
        for (List<BlockPlace> all : places.values()) {
            all.sort(newestFirst);
            Set<Long> seen = new HashSet<>();
            all.replaceAll(place -> place.state() == BlockState.INDEXED && !seen.add(place.namespaceId64())
                    ? place.in(BlockState.SUPERSEDED)
                    : place);
        }
    }

    /** After a clean stop the snapshot says what the index had; all else had been evicted from it. */
    private void dropEvicted(Snapshot.Marker marker) {
        Map<Spot, Boolean> wanted = new HashMap<>();
        places.values().forEach(all -> all.forEach(place -> wanted.put(spot(place), false)));
        String odd = Snapshot.readIndex(
                view.folders(), view.geometry(), marker, list -> (namespace, c, k, t, segment, page, b, sum, d) -> {
                    wanted.replace(new Spot(segment, page), true);
                    return true;
                });
        if (odd == null) {
            places.values()
                    .forEach(all ->
                            all.replaceAll(place -> place.state() == BlockState.INDEXED && !wanted.get(spot(place))
                                    ? place.in(BlockState.EVICTED)
                                    : place));
        }
    }

    private static Spot spot(BlockPlace place) {
        return new Spot(place.segment(), place.page());
    }
}
