package io.orbitkv.suite;

import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Location;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Which blocks the store has promised to keep, and where it said that they lie: what a reopened store is held against.
 *
 * <p>A promise ends when its segment is put to use again, which the segment's header must prove, or was given up for new
 * blocks before a clean stop, which the catalog must prove; and when the family is cleared. Not thread-safe.
 */
final class CrashLedger {
    /** How safe a block was said to be. */
    enum Promise {
        WRITTEN,
        DURABLE
    }

    /** Names a block; 128 bits of its key are enough to tell those of one run apart. */
    record Block(int family, int shard, long key0, long key1) {
        static Block of(int family, int shard, DirectBuffer keys, int offset) {
            return new Block(family, shard, keys.getLong(offset), keys.getLong(offset + Long.BYTES));
        }
    }

    /** Finds out which use a segment is in. */
    interface Uses {
        long of(int segment);
    }

    /** Says which uses of segments the store gave up, with their blocks, before it stopped. */
    interface GivenUp {
        boolean contains(int segment, long useSequence);
    }

    /** Says whether a drive that lied may have cost a block. */
    interface Excuse {
        boolean covers(Block block, Claim claim);
    }

    /** What was promised of one block. */
    static final class Claim {
        final UnsafeBuffer key = new UnsafeBuffer(new byte[32]);
        Promise promise;
        long position;
        int segment;
        long useSequence;

        /** Of its payload within the segment, or -1 where nobody said. */
        int page;

        @Override
        public String toString() {
            return promise + " at position " + position + " in segment " + segment + ", page " + page
                    + ", use-sequence " + useSequence;
        }
    }

    /** A block that was accepted and isn't known to be written, or durable, yet. */
    record Waiting(Block block, DirectBuffer keys, int offset, long position, int clears) {}

    private final CrashFamily[] families;
    private final Map<Block, Claim> claims = new LinkedHashMap<>();
    private final ArrayDeque<Waiting> unwritten = new ArrayDeque<>();
    private final ArrayDeque<Waiting> undurable = new ArrayDeque<>();

    private long excusedLosses;

    CrashLedger(CrashFamily... families) {
        this.families = families;
    }

    int size() {
        return claims.size();
    }

    Map<Block, Claim> claims() {
        return Collections.unmodifiableMap(claims);
    }

    /** A save has taken a block in. */
    void accepted(Block block, DirectBuffer keys, int offset, long position) {
        unwritten.add(new Waiting(block, keys, offset, position, families[block.family].clears));
    }

    /** Something said where a block lies that is as safe as promised. */
    void claim(Block block, DirectBuffer keys, int offset, Promise promise, long position, Location at) {
        claim(block, keys, offset, promise, position, at.segment(), at.useSequence());
        claims.get(block).page = at.page();
    }

    void claim(
            Block block, DirectBuffer keys, int offset, Promise promise, long position, int segment, long useSequence) {
        Claim claim = claims.computeIfAbsent(block, b -> new Claim());
        claim.key.putBytes(0, keys, offset, 32);
        claim.promise = promise;
        claim.position = position;
        claim.segment = segment;
        claim.useSequence = useSequence;
        claim.page = -1;
    }

    /** Turns what the store says of its positions into promises. */
    void acknowledge(KvStore store, FamilyHandle[] handles) {
        long written = store.writtenPosition();
        long durable = store.durablePosition();
        while (!unwritten.isEmpty() && unwritten.peek().position <= written) {
            Waiting next = unwritten.remove();
            Block block = next.block;
            if (next.clears != families[block.family].clears) {
                continue;
            }
            Location at = store.locate(handles[block.family].shard(block.shard), next.keys, next.offset);
            if (at.onDrive()) {
                claim(block, next.keys, next.offset, Promise.WRITTEN, next.position, at);
                undurable.add(next);
            }
        }
        while (!undurable.isEmpty() && undurable.peek().position <= durable) {
            Waiting next = undurable.remove();
            Claim claim = claims.get(next.block);
            // A segment that was given up since, as its flush had failed, has taken the block with it: a sync says so.
            if (claim != null
                    && claim.position == next.position
                    && store.useSequence(claim.segment) == claim.useSequence) {
                claim.promise = Promise.DURABLE;
            }
        }
    }

    /**
     * Looks where the blocks lie now: the store may move them, and the promise goes with them. How many have moved. A block
     * that went with its segment and was saved again is another matter: until that save is known to be written, what was
     * promised is promised of the old place.
     */
    int follow(KvStore store, FamilyHandle[] handles) {
        Set<Block> savedAgain = new HashSet<>();
        unwritten.forEach(waiting -> savedAgain.add(waiting.block));
        int moved = 0;
        for (Map.Entry<Block, Claim> next : claims.entrySet()) {
            Block block = next.getKey();
            Claim claim = next.getValue();
            Location at = store.locate(handles[block.family].shard(block.shard), claim.key, 0);
            boolean isElsewhere = at.segment() != claim.segment || at.useSequence() != claim.useSequence;
            if (at.onDrive() && isElsewhere && !savedAgain.contains(block)) {
                claim.segment = at.segment();
                claim.useSequence = at.useSequence();
                claim.page = at.page();
                moved++;
            }
        }
        return moved;
    }

    /** Blocks that were accepted and not seen written; none from now on. */
    List<Waiting> takeUnwritten() {
        List<Waiting> all = new ArrayList<>(unwritten);
        all.removeIf(waiting -> waiting.clears != families[waiting.block.family].clears);
        unwritten.clear();
        undurable.clear();
        return all;
    }

    /** The store was stopped cleanly. */
    void allDurable() {
        claims.values().forEach(claim -> claim.promise = Promise.DURABLE);
    }

    /** The drive that some segments lie on is gone, and what was promised of them with it. */
    void lost(IntPredicate segments) {
        claims.values().removeIf(claim -> segments.test(claim.segment));
    }

    void cleared(int family) {
        claims.keySet().removeIf(block -> block.family == family);
    }

    /**
     * Holds a store that was just opened against the promises; those that ended are forgotten, those that were kept are
     * durable from now on.
     *
     * @param needed promises below this did not have to survive
     * @param uses what the segments' headers say
     * @param givenUp what the catalog said after a clean stop; nothing after a death, which brings such blocks back
     * @param excuse what a drive that lied has cost
     * @return the blocks that are lost, in words
     */
    List<String> check(
            KvStore store, FamilyHandle[] handles, Promise needed, Uses uses, GivenUp givenUp, Excuse excuse) {
        List<String> lost = new ArrayList<>();
        for (Iterator<Map.Entry<Block, Claim>> all = claims.entrySet().iterator(); all.hasNext(); ) {
            Map.Entry<Block, Claim> next = all.next();
            Block block = next.getKey();
            Claim claim = next.getValue();
            Location at = store.locate(handles[block.family].shard(block.shard), claim.key, 0);
            if (at.onDrive()) {
                claim.promise = Promise.DURABLE;
                claim.segment = at.segment();
                claim.useSequence = at.useSequence();
                claim.page = at.page();
                continue;
            }
            if (claim.promise.compareTo(needed) >= 0
                    && uses.of(claim.segment) <= claim.useSequence
                    && !givenUp.contains(claim.segment, claim.useSequence)
                    && !excused(excuse, block, claim)) {
                lost.add(block + ", " + claim + "; its header says " + uses.of(claim.segment));
            }
            all.remove();
        }
        return lost;
    }

    /** Whether a running store still has everything that it should: no promise ends but with its segment. */
    List<String> checkRunning(KvStore store, FamilyHandle[] handles, Excuse excuse) {
        List<String> lost = new ArrayList<>();
        for (Map.Entry<Block, Claim> next : claims.entrySet()) {
            Block block = next.getKey();
            Claim claim = next.getValue();
            if (store.useSequence(claim.segment) == claim.useSequence
                    && !store.locate(handles[block.family].shard(block.shard), claim.key, 0)
                            .isStored()
                    && !excused(excuse, block, claim)) {
                lost.add(block + ", " + claim + ", in a running store");
            }
        }
        return lost;
    }

    private boolean excused(Excuse excuse, Block block, Claim claim) {
        boolean is = excuse.covers(block, claim);
        excusedLosses += is ? 1 : 0;
        return is;
    }

    /** Losses that the drive is to blame for, so far. */
    long excusedLosses() {
        return excusedLosses;
    }
}
