package io.orbitkv.bench.simulate;

import io.orbitkv.tiers.EvictionPolicy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Tiers in plain collections: slow, and meant to be read at a glance. */
final class NaiveTiers {
    private NaiveTiers() {}

    /** What every tier can do. */
    abstract static class Tier {
        int request;
        long written;
        long again;

        abstract boolean has(int key);

        abstract void touch(int key);

        abstract void add(int key, int lane);

        int laneOf(int key) {
            return -1;
        }
    }

    /** Holds nothing. */
    static final class Nothing extends Tier {
        @Override
        boolean has(int key) {
            return false;
        }

        @Override
        void touch(int key) {
            throw new AssertionError("touched what it has not");
        }

        @Override
        void add(int key, int lane) {
            // and takes nothing
        }
    }

    /** Single blocks in the order of their turns, the next to leave in front. */
    static final class Blocks extends Tier {
        private final String order;
        private final int capacity;
        private final Set<Integer> list = new LinkedHashSet<>();
        private final Set<Integer> used = new HashSet<>();

        Blocks(String order, int capacity) {
            this.order = order;
            this.capacity = capacity;
        }

        @Override
        boolean has(int key) {
            return list.contains(key);
        }

        @Override
        void touch(int key) {
            if (order.equals("LRU")) {
                list.remove(key);
                list.add(key);
            } else if (order.equals("CLOCK")) {
                used.add(key);
            }
        }

        @Override
        void add(int key, int lane) {
            while (list.size() == capacity) {
                int first = list.iterator().next();
                list.remove(first);
                if (used.remove(first)) {
                    list.add(first);
                }
            }
            list.add(key);
            written++;
        }
    }

    /** A segment: keys in the order of their appends. */
    private static final class Segment {
        final List<Integer> keys = new ArrayList<>();
        int turn;
    }

    /** Segments: open ones by lane, sealed ones in a list. */
    static final class Segments extends Tier {
        private final EvictionPolicy order;
        private final SegmentShape shape;
        private final Map<Integer, Integer> depths;
        private final Map<Integer, Segment> open = new HashMap<>();
        private final List<Segment> sealed = new ArrayList<>();
        private final Map<Integer, Segment> places = new HashMap<>();
        private final Set<Integer> used = new HashSet<>();

        Segments(EvictionPolicy order, SegmentShape shape, Map<Integer, Integer> depths) {
            this.order = order;
            this.shape = shape;
            this.depths = depths;
        }

        @Override
        boolean has(int key) {
            return places.containsKey(key);
        }

        @Override
        int laneOf(int key) {
            for (int lane = 0; lane < shape.lanes(); lane++) {
                if (has(key) && open.get(lane) == places.get(key)) {
                    return lane;
                }
            }
            return -1;
        }

        @Override
        void touch(int key) {
            used.add(key);
            Segment segment = places.get(key);
            if (order == EvictionPolicy.SEGMENT_LRU && segment.turn != request && sealed.remove(segment)) {
                segment.turn = request;
                sealed.add(segment); // of equally deep ones the first in the queue leaves
            }
        }

        @Override
        void add(int key, int lane) {
            append(key, lane);
            written++;
        }

        private void append(int key, int lane) {
            if (open.containsKey(lane) && open.get(lane).keys.size() == shape.segmentBlocks()) {
                Segment full = open.remove(lane);
                full.turn = request;
                sealed.add(full);
            }
            while (!open.containsKey(lane)) {
                if (sealed.size() + open.size() < shape.segments()) {
                    open.put(lane, new Segment());
                } else {
                    evict(shape.laneForAgain() ? shape.lanes() : lane);
                }
            }
            open.get(lane).keys.add(key);
            places.put(key, open.get(lane));
            used.remove(key);
        }

        private void evict(int laneForAgain) {
            Segment victim = victim();
            List<Integer> kept = new ArrayList<>();
            if (order == EvictionPolicy.SECOND_CHANCE) {
                victim.keys.stream().filter(used::contains).forEach(kept::add);
            }
            sealed.remove(victim);
            if (!kept.isEmpty() && kept.size() >= victim.keys.size() / 2.0) {
                victim.turn = request;
                used.removeAll(kept);
                sealed.add(victim);
                return;
            }
            victim.keys.forEach(places::remove);
            for (int key : kept) {
                append(key, laneForAgain);
                again++;
            }
        }

        private Segment victim() {
            if (order == EvictionPolicy.FIFO || (order == EvictionPolicy.SECOND_CHANCE && !shape.deepestFirst())) {
                return sealed.get(0);
            }
            Segment best = sealed.get(0);
            for (Segment segment : sealed) {
                if (segment.turn < best.turn || (segment.turn == best.turn && depth(segment) > depth(best))) {
                    best = segment;
                }
            }
            return best;
        }

        private int depth(Segment segment) {
            return depths.get(segment.keys.get(0));
        }
    }
}
