package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.nativeio.Tier;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: whatever was published, moved, dropped, reclaimed and swept, a match from any block on gives exactly what a
 * plain map would give.
 * Method: seeded random operations on trees of prefixes (forks at every depth, singles, batches), applied to the index
 * and to a {@link HashMap}; every answer is compared, field by field. Replay one with {@code -Dorbitkv.seed=N}.
 */
class PrefixIndexTest {
    private static final int SEGMENTS = 12;
    private static final int STEPS = 2500;

    static LongStream seeds() {
        Long replay = Long.getLong("orbitkv.seed");
        return replay != null ? LongStream.of(replay) : LongStream.range(0, 24);
    }

    /** Which directory the index has; its twin's test says another. */
    DirectoryKind kind() {
        return DirectoryKind.OPEN_ADDRESSING;
    }

    @ParameterizedTest(name = "seed {0}")
    @MethodSource("seeds")
    void answersAsAMapWould(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        // Small indexes are full all the time, large ones never.
        int blocksMax = seed % 3 == 0 ? 100 + random.nextInt(900) : 200_000;
        try (Generations host = new Generations(SEGMENTS);
                Generations nvme = new Generations(SEGMENTS);
                PrefixIndex index = new PrefixIndex(blocksMax, host, nvme, kind())) {
            Model model = new Model(random, index, host, nvme, seed);
            model.listens = seed % 4 != 1;
            for (int step = 0; step < STEPS; step++) {
                model.step();
            }
            model.endsEmpty();
        }
    }

    /** One block of a tree of prefixes. */
    private static final class Node {
        final Node parent;
        final UnsafeBuffer key = new UnsafeBuffer(new byte[PrefixIndex.KEY_BYTES]);
        final int depth;

        Node(Node parent, SplittableRandom random) {
            this.parent = parent;
            this.depth = parent == null ? 0 : parent.depth + 1;
            for (int i = 0; i < PrefixIndex.KEY_BYTES; i += Long.BYTES) {
                key.putLong(i, random.nextLong());
            }
        }
    }

    private static final class Row {
        long host;
        long nvme;
        int bytes;
        int checksum;
    }

    private static final class Model {
        final SplittableRandom random;
        final PrefixIndex index;
        final Generations host;
        final Generations nvme;
        final long seed;
        final Match match = new Match(1000);
        final UnsafeBuffer keys = new UnsafeBuffer(new byte[1000 * PrefixIndex.KEY_BYTES]);
        final List<Node> nodes = new ArrayList<>();
        Map<Node, Row> rows = new HashMap<>();
        final Map<Long, Node> byKey0 = new HashMap<>();
        final Picture picture;
        int namespace;
        int step;
        boolean listens;

        Model(SplittableRandom random, PrefixIndex index, Generations host, Generations nvme, long seed) {
            this.random = random;
            this.index = index;
            this.host = host;
            this.nvme = nvme;
            this.seed = seed;
            this.namespace = index.newNamespace();
            this.picture = new Picture(index, key0 -> isPresent(byKey0.get(key0)));
        }

        void step() {
            step++;
            listen();
            int dice = random.nextInt(100);
            if (dice < 35) {
                save();
            } else if (dice < 70) {
                match();
            } else if (dice < 77) {
                place();
            } else if (dice < 82) {
                forget();
            } else if (dice < 86) {
                publishAgain();
            } else if (dice < 88) {
                recover();
            } else if (dice < 90) {
                recoverTogether();
            } else if (dice < 93) {
                (random.nextBoolean() ? host : nvme).raise(random.nextInt(SEGMENTS));
            } else if (dice < 99) {
                index.sweep(1 + random.nextInt(random.nextInt(10) == 0 ? 100_000 : 40));
            } else if (random.nextInt(8) == 0) {
                index.retire(namespace);
                assertEquals(0, index.match(namespace, keys, 0, 10, match), this::where);
                rows = new HashMap<>();
                namespace = index.newNamespace();
                picture.cleared();
            }
        }

        /** What a listener believes is never too little, and what is there and nothing else behind a whole sweep. */
        void listen() {
            if (!listens) {
                return;
            }
            if (step == 1 || random.nextInt(300) == 0) {
                picture.served ^= random.nextBoolean();
                picture.begin();
            }
            if (!picture.walk(1 + random.nextInt(20)) || nodes.isEmpty()) {
                return;
            }
            Node node = any();
            assertTrue(!isPresent(node) || picture.believes(node.key.getLong(0)), this::where);
            if (random.nextInt(50) == 0) {
                long end = index.sweepsUntilPassed();
                while (index.completedSweeps() < end) {
                    index.sweep(1 + random.nextInt(100));
                }
                Set<Long> present = new HashSet<>();
                rows.keySet().stream().filter(this::isPresent).forEach(each -> present.add(each.key.getLong(0)));
                Set<Long> gone = new HashSet<>(picture.believed());
                gone.removeAll(present);
                present.removeAll(picture.believed());
                assertTrue(
                        gone.isEmpty() && present.isEmpty(),
                        () -> where() + ": believes in " + gone.size() + " too many, lacks " + present.size());
            }
        }

        boolean isPresent(Node node) {
            Row row = rows.get(node);
            return row != null && (host.isLive(row.host) || (picture.served && nvme.isLive(row.nvme)));
        }

        void save() {
            Node at = nodes.isEmpty() || random.nextInt(12) == 0 ? null : any();
            if (at != null && random.nextBoolean()) {
                at = nodes.get(nodes.size() - 1);
            }
            int count = random.nextInt(4) == 0 ? 1 : 1 + random.nextInt(150);
            if (random.nextBoolean()) {
                index.expect(random.nextInt(200));
            }
            for (int i = 0; i < count && (at == null || at.depth < 990); i++) {
                at = new Node(at, random);
                nodes.add(at);
                byKey0.put(at.key.getLong(0), at);
                publish(at);
            }
        }

        void publish(Node node) {
            Row row = newRow();
            Tier tier = random.nextInt(3) == 0 ? Tier.NVME : Tier.HOST;
            row.host = tier == Tier.HOST ? extent(host) : Extent.NONE;
            row.nvme = tier == Tier.NVME ? extent(nvme) : Extent.NONE;
            PrefixIndex.Publication answer = index.publish(
                    namespace,
                    node.parent == null ? null : node.parent.key,
                    0,
                    node.key,
                    0,
                    row.bytes,
                    row.checksum,
                    tier,
                    row.host | row.nvme);
            if (isLive(node)) {
                assertEquals(PrefixIndex.Publication.PRESENT, answer, this::where);
            } else if (answer == PrefixIndex.Publication.FULL) {
                assertEquals(index.blocksMax(), index.blocks(), this::where);
            } else {
                assertEquals(PrefixIndex.Publication.PUBLISHED, answer, this::where);
                rows.put(node, row);
            }
        }

        void publishAgain() {
            if (!nodes.isEmpty()) {
                Node node = any();
                for (int i = 0; i < 30 && node != null; i++, node = node.parent) {
                    publish(node);
                }
            }
        }

        void recover() {
            if (nodes.isEmpty()) {
                return;
            }
            Node node = any();
            Row held = rows.get(node);
            Row row = newRow();
            row.nvme = extent(nvme);
            boolean isLive = isLive(node);
            if (isLive && random.nextBoolean()) { // the same block as it was saved anew
                row.bytes = held.bytes;
                row.checksum = held.checksum;
            }
            boolean isOlder = random.nextBoolean();
            int answer = index.recover(
                    namespace,
                    node.parent != null,
                    node.parent == null ? 0 : node.parent.key.getLong(0),
                    node.parent == null ? 0 : node.parent.key.getLong(8),
                    node.key.getLong(0),
                    node.key.getLong(8),
                    row.nvme,
                    row.bytes,
                    row.checksum,
                    0,
                    extent -> isOlder && extent == held.nvme);
            if (!isLive) {
                if (answer == PrefixIndex.RECOVER_FULL) {
                    assertEquals(index.blocksMax(), index.blocks(), this::where);
                    return;
                }
                assertEquals(PrefixIndex.RECOVERED, answer, this::where);
                rows.put(node, row);
                tellRecovered(node);
            } else if (held.nvme == row.nvme) {
                assertEquals(PrefixIndex.RECOVERED, answer, this::where);
            } else if (!nvme.isLive(held.nvme)) {
                boolean isSame = row.bytes == held.bytes && row.checksum == held.checksum;
                assertEquals(isSame ? PrefixIndex.RECOVERED : PrefixIndex.RECOVER_KEPT, answer, this::where);
                held.nvme = isSame ? row.nvme : held.nvme;
                tellRecovered(node);
            } else if (host.isLive(held.host) || !isOlder) {
                assertEquals(PrefixIndex.RECOVER_KEPT, answer, this::where);
            } else {
                assertEquals(held.bytes, answer, this::where);
                rows.put(node, row);
            }
        }

        void tellRecovered(Node node) {
            if (listens && isPresent(node)) {
                picture.recovered(node.key.getLong(0), node.key.getLong(8));
            }
        }

        /** Consecutive blocks, of which the first may be known, or all, or none. */
        void recoverTogether() {
            List<Node> path = new ArrayList<>();
            Node at = nodes.isEmpty() || random.nextInt(12) == 0 ? null : any();
            int known = at == null ? 0 : random.nextInt(at.depth + 1) % PrefixIndex.RECOVERED_MAX;
            for (Node node = at; node != null && path.size() < known; node = node.parent) {
                path.add(node);
            }
            Collections.reverse(path);
            int count = Math.max(path.size(), 1 + random.nextInt(PrefixIndex.RECOVERED_MAX));
            while (path.size() < count && (at == null || at.depth < 990)) {
                at = new Node(at, random);
                nodes.add(at);
                byKey0.put(at.key.getLong(0), at);
                path.add(at);
            }
            int from = random.nextInt(3);
            count = path.size();
            if (count == 0) {
                return;
            }
            long[] key0s = new long[from + count];
            long[] tags = new long[from + count];
            long[] extents = new long[from + count];
            long[] sizes = new long[from + count];
            List<Row> came = new ArrayList<>();
            int segment = random.nextInt(SEGMENTS);
            for (int i = 0; i < count; i++) {
                Row row = newRow();
                segment = random.nextInt(40) == 0 ? random.nextInt(SEGMENTS) : segment;
                row.nvme = Extent.pack(segment, random.nextInt(Extent.PAGES_MAX), nvme.current(segment));
                came.add(row);
                key0s[from + i] = path.get(i).key.getLong(0);
                tags[from + i] = path.get(i).key.getLong(8);
                extents[from + i] = row.nvme;
                sizes[from + i] = Integer.toUnsignedLong(row.bytes) | (long) row.checksum << 32;
            }
            int live = 0;
            while (live < count && !isLive(path.get(live))) {
                live++;
            }
            boolean isNew = path.stream().noneMatch(rows::containsKey);
            long blocks = index.blocks();
            Node parent = path.get(0).parent;
            index.touch(namespace, key0s, from, count);
            int taken = index.recoverNew(
                    namespace,
                    parent != null,
                    parent == null ? 0 : parent.key.getLong(0),
                    parent == null ? 0 : parent.key.getLong(8),
                    key0s,
                    tags,
                    extents,
                    sizes,
                    from,
                    count);
            assertEquals(blocks + taken, index.blocks(), this::where);
            assertTrue(taken <= live, this::where); // one that is dead may have a place yet
            if (isNew) {
                assertEquals(Math.min(count, index.blocksMax() - blocks), taken, this::where);
            }
            for (int i = 0; i < taken; i++) {
                rows.put(path.get(i), came.get(i));
                tellRecovered(path.get(i));
            }
        }

        void place() {
            if (nodes.isEmpty()) {
                return;
            }
            Node node = any();
            Row row = rows.get(node);
            boolean fromHost = random.nextBoolean();
            long held = row == null ? Extent.NONE : fromHost ? row.host : row.nvme;
            boolean stale = held == Extent.NONE || !(fromHost ? host : nvme).isLive(held);
            if (held == Extent.NONE || random.nextInt(4) == 0) {
                held = Extent.pack(SEGMENTS, 1, 1); // a segment that doesn't exist
            }
            Generations target = fromHost ? nvme : host;
            long extent = extent(target);
            boolean placed = index.place(
                    namespace,
                    node.key,
                    0,
                    fromHost ? Tier.HOST : Tier.NVME,
                    held,
                    fromHost ? Tier.NVME : Tier.HOST,
                    extent);
            boolean same = row != null && held == (fromHost ? row.host : row.nvme);
            if (!stale || !same) {
                assertEquals(same, placed, this::where);
            } // a stale extent is still there, or swept
            if (placed) {
                if (fromHost) {
                    row.nvme = extent;
                } else {
                    row.host = extent;
                }
            }
        }

        void forget() {
            if (nodes.isEmpty()) {
                return;
            }
            Node node = any();
            Row row = rows.get(node);
            if (row == null || !host.isLive(row.host)) {
                return;
            }
            long other = Extent.pack(Extent.segment(row.host), Extent.page(row.host) ^ 1, Extent.generation(row.host));
            assertTrue(!index.forget(namespace, node.key, 0, Tier.HOST, other), this::where);
            assertTrue(!index.holds(namespace, node.key, 0, Tier.HOST, other), this::where);
            assertTrue(index.holds(namespace, node.key, 0, Tier.HOST, row.host), this::where);
            long forgotten = row.host;
            row.host = Extent.NONE;
            assertTrue(index.forget(namespace, node.key, 0, Tier.HOST, forgotten), this::where);
            assertTrue(!index.holds(namespace, node.key, 0, Tier.HOST, forgotten), this::where);
            assertTrue(
                    !listens || !picture.isWhole() || isPresent(node) == picture.believes(node.key.getLong(0)),
                    this::where);
        }

        void match() {
            if (nodes.isEmpty()) {
                return;
            }
            List<Node> path = new ArrayList<>();
            for (Node node = any(); node != null; node = node.parent) {
                path.add(node);
            }
            Collections.reverse(path);
            int from = random.nextInt(3) == 0 ? 0 : random.nextInt(path.size());
            int count = path.size() - from;
            int offset = random.nextInt(2) * PrefixIndex.KEY_BYTES;
            count = Math.min(count, 999);
            for (int i = 0; i < count; i++) {
                keys.putBytes(offset + i * PrefixIndex.KEY_BYTES, path.get(from + i).key, 0, PrefixIndex.KEY_BYTES);
            }
            int expected = 0;
            while (expected < count && isLive(path.get(from + expected))) {
                expected++;
            }
            assertEquals(expected, index.match(namespace, keys, offset, count, match), this::where);
            assertEquals(expected, match.length());
            int onHost = 0;
            for (int i = 0; i < expected; i++) {
                Row row = rows.get(path.get(from + i));
                assertEquals(host.isLive(row.host) ? row.host : Extent.NONE, match.extent(Tier.HOST, i), this::where);
                assertEquals(nvme.isLive(row.nvme) ? row.nvme : Extent.NONE, match.extent(Tier.NVME, i), this::where);
                assertEquals(row.bytes, match.bytes(i), this::where);
                assertEquals(row.checksum, match.checksum(i), this::where);
                onHost += host.isLive(row.host) ? 1 : 0;
            }
            assertEquals(onHost, match.blocks(Tier.HOST), this::where);
            int partFrom = random.nextInt(expected + 1);
            int partTo = partFrom + random.nextInt(expected - partFrom + 1);
            long onNvme = path.subList(from + partFrom, from + partTo).stream()
                    .filter(node -> nvme.isLive(rows.get(node).nvme))
                    .count();
            assertEquals(onNvme, match.blocks(Tier.NVME, partFrom, partTo), this::where);
            Node node = any();
            assertEquals(isLive(node), index.contains(namespace, node.key, 0), this::where);
        }

        /** Everything reclaimed and swept: nothing is left, and a full index takes blocks again. */
        void endsEmpty() {
            for (int segment = 0; segment < SEGMENTS; segment++) {
                host.raise(segment);
                nvme.raise(segment);
            }
            long sweeps = index.completedSweeps();
            while (index.completedSweeps() < sweeps + 2) {
                index.sweep(1000);
            }
            assertEquals(0, index.blocks(), this::where);
            assertEquals(0, index.runs(), this::where);
            for (int i = 0; i < index.blocksMax() && i < 300; i++) {
                Node node = new Node(null, random);
                byKey0.put(node.key.getLong(0), node);
                publish(node);
                assertTrue(isLive(node), this::where);
            }
        }

        Row newRow() {
            Row row = new Row();
            row.bytes = random.nextInt();
            row.checksum = random.nextInt();
            return row;
        }

        long extent(Generations generations) {
            int segment = random.nextInt(SEGMENTS);
            return Extent.pack(segment, random.nextInt(Extent.PAGES_MAX), generations.current(segment));
        }

        boolean isLive(Node node) {
            Row row = rows.get(node);
            return row != null && (host.isLive(row.host) || nvme.isLive(row.nvme));
        }

        Node any() {
            // Mostly recent ones, so that live blocks are met although segments are reclaimed all the time.
            int recent = Math.min(nodes.size(), random.nextBoolean() ? 400 : nodes.size());
            return nodes.get(nodes.size() - 1 - random.nextInt(recent));
        }

        String where() {
            return "seed " + seed + " step " + step;
        }
    }
}
