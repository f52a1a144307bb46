package io.orbitkv.bench.simulate;

import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.EvictionPolicy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Simulates caches in plain collections: what the fast simulator has to equal to the block. */
final class Oracle {
    private final List<List<Integer>> requests = new ArrayList<>();
    private final List<Integer> tokens = new ArrayList<>();
    private final Map<Integer, Integer> parents = new HashMap<>();
    private final Map<Integer, Integer> depths = new HashMap<>();
    private final List<Double> flops = new ArrayList<>(List.of(0.0));
    private final int blockTokens;

    private long hostHits;
    private long hits;
    private double hostCost;
    private double cost;
    private double unreachableSum;
    private int samples;

    Oracle(List<GeneratedTrace.Request> trace, int blockTokens) {
        this.blockTokens = blockTokens;
        Map<List<Long>, Integer> numbers = new HashMap<>();
        for (GeneratedTrace.Request request : trace) {
            List<Integer> keys = new ArrayList<>();
            for (int i = 0; i < request.ids().size(); i++) {
                List<Long> prefix = request.ids().subList(0, i + 1);
                Integer key = numbers.get(prefix);
                if (key == null) {
                    key = numbers.size();
                    numbers.put(new ArrayList<>(prefix), key);
                    depths.put(key, i);
                    parents.put(key, i == 0 ? -1 : keys.get(i - 1));
                }
                keys.add(key);
            }
            requests.add(keys);
            tokens.add(request.tokens());
        }
    }

    int uniqueBlocks() {
        return depths.size();
    }

    // ---- one tier ----

    SimResult oneTier(NaiveTiers.Tier tier, boolean tailFirst) {
        start();
        for (int r = 0; r < requests.size(); r++) {
            List<Integer> keys = requests.get(r);
            tier.request = r;
            int miss = 0;
            while (miss < keys.size() && tier.has(keys.get(miss))) {
                hit(r, miss++, false);
            }
            for (int step = 0; step < keys.size(); step++) {
                int i = tailFirst ? keys.size() - 1 - step : step;
                if (!tier.has(keys.get(i))) {
                    tier.add(keys.get(i), 0);
                } else if (tailFirst || i < miss) {
                    tier.touch(keys.get(i));
                }
            }
            sample(r, held(tier, null));
        }
        return result(tier.written, tier.again);
    }

    SimResult belady(int capacity) {
        start();
        Map<Integer, TreeSet<Integer>> uses = new HashMap<>();
        int places = 0;
        for (List<Integer> keys : requests) {
            for (int key : keys) {
                uses.computeIfAbsent(key, k -> new TreeSet<>()).add(places++);
            }
        }
        Set<Integer> held = new HashSet<>();
        long written = 0;
        int place = 0;
        for (int r = 0; r < requests.size(); r++) {
            List<Integer> keys = requests.get(r);
            for (int i = 0; i < keys.size() && held.contains(keys.get(i)); i++) {
                hit(r, i, false);
            }
            for (int key : keys) {
                place++;
                int next = nextUse(uses, key, place);
                boolean was = held.remove(key);
                if (next == Integer.MAX_VALUE) {
                    continue;
                }
                if (held.size() == capacity) {
                    int now = place;
                    int latest = held.stream()
                            .max((a, b) -> Integer.compare(nextUse(uses, a, now), nextUse(uses, b, now)))
                            .orElseThrow();
                    if (nextUse(uses, latest, now) < next) {
                        continue;
                    }
                    held.remove(latest);
                }
                held.add(key);
                written += was ? 0 : 1;
            }
            sample(r, held);
        }
        return result(written, 0);
    }

    private static int nextUse(Map<Integer, TreeSet<Integer>> uses, int key, int from) {
        Integer next = uses.get(key).ceiling(from);
        return next == null ? Integer.MAX_VALUE : next;
    }

    NaiveTiers.Segments segments(EvictionPolicy order, SegmentShape shape) {
        return new NaiveTiers.Segments(order, shape, depths);
    }

    // ---- two tiers ----

    SimResult twoTiers(StoreShape shape) {
        start();
        NaiveTiers.Tier host =
                shape.host() == null ? new NaiveTiers.Nothing() : segments(shape.hostOrder(), shape.host());
        NaiveTiers.Tier nvme = segments(shape.nvmeOrder(), shape.nvme());
        long driveBlocks = shape.nvme().capacityBlocks();
        Set<Integer> memory = new LinkedHashSet<>();
        Map<Integer, Integer> queue = new LinkedHashMap<>();
        Duellists duel = new Duellists(driveBlocks, shape.price());
        for (int r = 0; r < requests.size(); r++) {
            List<Integer> keys = requests.get(r);
            host.request = r;
            nvme.request = r;
            int miss = 0;
            while (miss < keys.size()) {
                int key = keys.get(miss);
                boolean inHost = host.has(key) || queue.containsKey(key);
                if (!inHost && !nvme.has(key)) {
                    break;
                }
                hit(r, miss++, inHost);
            }
            int lane = laneOfKey(shape, keys.get(0));
            for (int i = 0; i < keys.size(); i++) {
                int key = keys.get(i);
                if (i == miss) { // from here on blocks are saved
                    int open = i > 0 ? host.laneOf(keys.get(i - 1)) : -1;
                    lane = open >= 0 ? open : laneOfKey(shape, key);
                }
                boolean admitted = shape.admission() == AdmissionPolicy.ALL
                        || (shape.admission() == AdmissionPolicy.DUEL && !duel.onSecondUse)
                        || memory.contains(key);
                boolean inHost = host.has(key) || queue.containsKey(key);
                boolean onNvme = nvme.has(key);
                if (i < miss) {
                    if (host.has(key)) {
                        host.touch(key);
                    }
                    if (inHost && !onNvme && admitted && shape.admission() != AdmissionPolicy.ALL) {
                        offer(queue, shape.queueBlocks(), nvme, key, lane);
                    }
                    if (onNvme) {
                        nvme.touch(key);
                    }
                    if (onNvme && !inHost) {
                        host.add(key, lane);
                    }
                } else if (!inHost && !onNvme) {
                    host.add(key, lane);
                    if (admitted) {
                        offer(queue, shape.queueBlocks(), nvme, key, lane);
                    }
                }
            }
            remember(memory, keys, 4 * driveBlocks);
            duel.end(r, keys, miss);
            Set<Integer> held = held(host, nvme);
            held.addAll(queue.keySet());
            sample(r, held);
        }
        return result(nvme.written, nvme.again);
    }

    /** The queue holds blocks with their lanes, the one that waits longest in front. */
    private static void offer(Map<Integer, Integer> queue, int most, NaiveTiers.Tier nvme, int key, int lane) {
        queue.putIfAbsent(key, lane);
        if (queue.size() > most) {
            int first = queue.keySet().iterator().next();
            nvme.add(first, queue.remove(first));
        }
    }

    private static int laneOfKey(StoreShape shape, int key) {
        return (int) Long.remainderUnsigned(Mix.hash(key), shape.nvme().lanes());
    }

    /** A set in the order of its additions: the first one is forgotten where they are too many. */
    private static void remember(Set<Integer> memory, List<Integer> keys, long most) {
        for (int key : keys) {
            memory.add(key);
            if (memory.size() > most) {
                memory.remove(memory.iterator().next());
            }
        }
    }

    /** The two shadows of the duel. */
    private final class Duellists {
        final NaiveTiers.Blocks all;
        final NaiveTiers.Blocks reuse;
        final Set<Integer> memory = new LinkedHashSet<>();
        final long memoryMost;
        final double price;
        double allScore;
        double reuseScore;
        boolean onSecondUse;
        int uses;

        Duellists(long driveBlocks, double price) {
            all = new NaiveTiers.Blocks("CLOCK", (int) Math.max(1, driveBlocks / 8));
            reuse = new NaiveTiers.Blocks("CLOCK", (int) Math.max(1, driveBlocks / 8));
            memoryMost = 4 * driveBlocks / 8;
            this.price = price;
        }

        void end(int r, List<Integer> keys, int miss) {
            boolean lucky = miss < keys.size() && Long.remainderUnsigned(Mix.hash(keys.get(miss)), 8) == 0;
            List<Integer> sampled = new ArrayList<>();
            for (int i = 0; i < keys.size(); i++) {
                int key = keys.get(i);
                if ((lucky && i >= miss) || memory.contains(key) || all.has(key) || reuse.has(key)) {
                    sampled.add(i);
                }
            }
            allScore += play(all, r, keys, miss, sampled, false);
            reuseScore += play(reuse, r, keys, miss, sampled, true);
            List<Integer> seen = new ArrayList<>();
            sampled.forEach(i -> seen.add(keys.get(i)));
            remember(memory, seen, memoryMost);
            uses += sampled.size();
            if (uses >= 256 && allScore != reuseScore) {
                onSecondUse = reuseScore > allScore;
            }
        }

        private double play(
                NaiveTiers.Blocks shadow, int r, List<Integer> keys, int miss, List<Integer> sampled, boolean second) {
            double score = 0;
            boolean missedBefore = false;
            boolean missedBehind = false;
            for (int i : sampled) {
                int key = keys.get(i);
                if (shadow.has(key)) {
                    shadow.touch(key);
                    if (i < miss ? !missedBefore : !missedBehind) {
                        score += (cost(r, i + 1) - cost(r, i)) / flops(blockTokens);
                    }
                    continue;
                }
                missedBefore |= i < miss;
                missedBehind |= i >= miss;
                if (!second || memory.contains(key)) {
                    shadow.add(key, 0);
                    score -= price;
                }
            }
            return score;
        }
    }

    // ---- counting ----

    private void start() {
        hostHits = 0;
        hits = 0;
        hostCost = 0;
        cost = 0;
        unreachableSum = 0;
        samples = 0;
    }

    private void hit(int r, int i, boolean inHost) {
        double saved = cost(r, i + 1) - cost(r, i);
        if (inHost) {
            hostHits++;
            hostCost += saved;
        } else {
            hits++;
            cost += saved;
        }
    }

    /** Of the first blocks of a request. */
    private double cost(int r, int blocks) {
        return flops(Math.min(tokens.get(r), blocks * blockTokens));
    }

    private double flops(int count) {
        while (flops.size() <= count) {
            int p = flops.size() - 1;
            flops.add(flops.get(p) + 16e9 + 4.0 * 32 * 4096 * p);
        }
        return flops.get(count);
    }

    private Set<Integer> held(NaiveTiers.Tier first, NaiveTiers.Tier second) {
        Set<Integer> held = new HashSet<>();
        for (int key : depths.keySet()) {
            if (first.has(key) || (second != null && second.has(key))) {
                held.add(key);
            }
        }
        return held;
    }

    private void sample(int r, Set<Integer> held) {
        if ((r + 1) % Math.max(1, requests.size() / 32) != 0) {
            return;
        }
        int lost = 0;
        for (int key : held) {
            boolean whole = true;
            for (int above = parents.get(key); above >= 0; above = parents.get(above)) {
                whole &= held.contains(above);
            }
            lost += whole ? 0 : 1;
        }
        unreachableSum += held.isEmpty() ? 0 : (double) lost / held.size();
        samples++;
    }

    private SimResult result(long written, long again) {
        double total = 0;
        int blocks = 0;
        for (int r = 0; r < requests.size(); r++) {
            total += flops(tokens.get(r));
            blocks += requests.get(r).size();
        }
        return new SimResult(
                "oracle",
                0,
                0,
                requests.size(),
                blocks,
                depths.size(),
                hostHits,
                hits,
                hostCost / total,
                cost / total,
                written,
                again,
                unreachableSum / samples);
    }
}
