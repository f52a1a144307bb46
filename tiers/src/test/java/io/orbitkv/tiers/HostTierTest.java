package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.LeakCheck;
import io.orbitkv.kit.Seed;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * Goal: a block's bytes stay as long as its extent is live and somebody has it pinned, whatever else is claimed.
 * Method: claim, pin, unpin, grow and evict at random beside a map of what each live extent must hold.
 */
class HostTierTest {
    private static final int SEGMENT_BYTES = 64 << 10;
    private static final int LANES = 4;

    @Test
    void claimsOfALaneLieBehindEachOther() {
        try (HostTier tier =
                new HostTier(8L * SEGMENT_BYTES, SEGMENT_BYTES, LANES, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE)) {
            long first = tier.claim(1, 5000);
            long second = tier.claim(1, 1);
            assertEquals(Extent.segment(first), Extent.segment(second));
            assertEquals(2, Extent.page(second) - Extent.page(first), "5,000 bytes take two pages");
            assertNotEquals(Extent.segment(first), Extent.segment(tier.claim(2, 1)), "lanes do not mix");
            assertEquals(1, tier.laneOf(second));
        }
    }

    @Test
    void listingsBelongToTheirExtents() {
        try (HostTier tier =
                new HostTier(8L * SEGMENT_BYTES, SEGMENT_BYTES, LANES, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE)) {
            BlockListing view = new BlockListing();
            long[] extents = new long[10];
            for (int i = 0; i < extents.length; i++) {
                extents[i] = tier.claim(0, 4096);
                tier.listing(extents[i], view).clear().birth(100 + i);
            }
            for (int i = 0; i < extents.length; i++) {
                assertEquals(100 + i, tier.listing(extents[i], view).birth());
            }
        }
    }

    @Test
    void aPinnedSegmentIsNeverReused() {
        try (HostTier tier =
                new HostTier(8L * SEGMENT_BYTES, SEGMENT_BYTES, 1, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE)) {
            for (int i = 0; i < 8; i++) {
                assertNotEquals(Extent.NONE, tier.claim(0, SEGMENT_BYTES));
            }
            assertEquals(Extent.NONE, tier.claim(0, SEGMENT_BYTES), "every claim still holds its pin");
        }
    }

    @Test
    void anEvictedExtentIsStale() {
        try (HostTier tier =
                new HostTier(4L * SEGMENT_BYTES, SEGMENT_BYTES, 1, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE)) {
            long first = tier.claim(0, SEGMENT_BYTES);
            tier.unpin(first);
            for (int i = 0; i < 4; i++) {
                tier.unpin(tier.claim(0, SEGMENT_BYTES));
            }
            assertFalse(tier.pin(first));
            assertFalse(tier.generations().isLive(first));
            assertEquals(1, tier.evictedSegments());
        }
    }

    @Test
    void aPoolWithoutRoomForItsOpenSegmentsIsRefused() {
        OrbitKvException refused = assertThrows(
                OrbitKvException.class,
                () -> new HostTier(
                        7L * SEGMENT_BYTES, SEGMENT_BYTES, LANES, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE));
        assertEquals(ErrorCode.POOL_TOO_SMALL, refused.code());
        assertTrue(refused.getMessage().contains("make the pool at least " + 8 * SEGMENT_BYTES), refused.getMessage());
    }

    @Test
    void aPartOfAPoolEvictsAsASmallerPoolDoes() {
        long poolBytes = 64L * SEGMENT_BYTES;
        try (HostTier smaller = new HostTier(
                        10L * SEGMENT_BYTES, SEGMENT_BYTES, LANES, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE);
                HostTier part = new HostTier(
                        poolBytes,
                        SEGMENT_BYTES,
                        LANES,
                        PageKind.SMALL,
                        EvictionPolicy.SECOND_CHANCE,
                        "",
                        10L * SEGMENT_BYTES)) {
            Gen gen = new Gen(Seed.of(HostTierTest.class));
            for (int step = 0; step < 5_000; step++) {
                int lane = gen.below(LANES);
                int bytes = 1 + gen.below(SEGMENT_BYTES);
                long extent = part.claim(lane, bytes);
                assertEquals(smaller.claim(lane, bytes), extent, "step " + step);
                assertTrue(Extent.segment(extent) < 10, Extent.text(extent));
                if (gen.below(3) == 0) {
                    part.markUsed(extent, part.nextUse());
                    smaller.markUsed(extent, smaller.nextUse());
                }
                part.unpin(extent);
                smaller.unpin(extent);
            }
            assertEquals(smaller.evictedSegments(), part.evictedSegments());
            assertTrue(part.evictedSegments() > 1_000, "the test must evict: " + part.evictedSegments());
            assertFalse(part.hasMoves(), "a pool below 16 segments appends nothing again");
        }
    }

    @Test
    void aPartThatGrowsIsFilledBeforeAnythingIsEvicted() {
        try (HostTier tier = new HostTier(
                64L * SEGMENT_BYTES, SEGMENT_BYTES, 1, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE, "", 0)) {
            assertEquals(2L * SEGMENT_BYTES, tier.usableBytes(), "two segments for each open one");
            claimWhole(tier, 5);
            assertEquals(3, tier.evictedSegments());
            tier.use(20L * SEGMENT_BYTES + 1);
            assertEquals(20L * SEGMENT_BYTES, tier.usableBytes());
            claimWhole(tier, 18);
            assertEquals(3, tier.evictedSegments());
            tier.use(4L * SEGMENT_BYTES);
            assertEquals(20L * SEGMENT_BYTES, tier.usableBytes(), "never less");
            claimWhole(tier, 1);
            assertEquals(4, tier.evictedSegments());
            tier.use(Long.MAX_VALUE);
            assertEquals(64L * SEGMENT_BYTES, tier.usableBytes());
            claimWhole(tier, 44);
            assertEquals(4, tier.evictedSegments());
            claimWhole(tier, 1);
            assertEquals(5, tier.evictedSegments());
        }
    }

    private static void claimWhole(HostTier tier, int segments) {
        for (int i = 0; i < segments; i++) {
            tier.unpin(tier.claim(0, SEGMENT_BYTES));
        }
    }

    @Test
    void liveAndPinnedBlocksKeepTheirBytes() {
        Gen gen = new Gen(Seed.of(HostTierTest.class));
        LeakCheck leaks = LeakCheck.take();
        try (HostTier tier = new HostTier(
                32L * SEGMENT_BYTES, SEGMENT_BYTES, LANES, PageKind.SMALL, EvictionPolicy.SECOND_CHANCE, "", 0)) {
            Map<Long, Byte> contents = new HashMap<>();
            Deque<Long> pinned = new ArrayDeque<>();
            for (int step = 0; step < 50_000; step++) {
                tier.use(step / 1_000L * SEGMENT_BYTES);
                if (gen.below(3) > 0) {
                    int bytes = 1 + gen.below(5 * MemoryRegion.PAGE_BYTES);
                    long extent = tier.claim(gen.below(LANES), bytes);
                    if (extent != Extent.NONE) {
                        byte content = (byte) gen.nextLong();
                        tier.memory().fill(tier.payloadOffset(extent), bytes, content);
                        contents.put(extent, content);
                        pinned.add(extent);
                    }
                } else {
                    pinned.addAll(contents.keySet().stream()
                            .filter(tier::pin)
                            .limit(1)
                            .toList());
                }
                while (pinned.size() > gen.below(60)) {
                    long extent = pinned.poll();
                    byte found = tier.memory().getByte(tier.payloadOffset(extent));
                    assertEquals(contents.get(extent), found, () -> "pinned " + Extent.text(extent));
                    tier.unpin(extent);
                }
                contents.keySet().removeIf(extent -> !tier.generations().isLive(extent) && !pinned.contains(extent));
            }
            assertTrue(tier.evictedSegments() > 100, "the test must evict: " + tier.evictedSegments());
        }
        leaks.assertNothingLeaked();
    }
}
