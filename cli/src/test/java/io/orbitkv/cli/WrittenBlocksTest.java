package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.orbitkv.kit.Seed;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: the parent holds exactly the latest acknowledgement of each key, and the child acknowledges in order.
 * Method: random operations beside a map and a queue; keys that collide in their first bytes are among them.
 */
class WrittenBlocksTest {
    @Test
    void holdsTheLatestOfEachKey() {
        long seed = Seed.of(WrittenBlocksTest.class);
        SplittableRandom random = new SplittableRandom(seed);
        WrittenBlocks written = new WrittenBlocks();
        Map<ByteBuffer, Long> model = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            byte[] key = new byte[32];
            key[0] = (byte) random.nextInt(3); // few values in the bytes that the slot comes from
            ByteBuffer.wrap(key).putInt(28, random.nextInt(6_000));
            written.put(key, 0, i % 1000, i);
            model.put(ByteBuffer.wrap(key), (long) i);
        }
        assertEquals(model.size(), written.blocks());
        for (int block = 0; block < written.blocks(); block++) {
            byte[] key = new byte[32];
            System.arraycopy(written.keys(), block * 32, key, 0, 32);
            assertEquals(model.get(ByteBuffer.wrap(key)), written.useSequence(block), "seed " + seed);
            assertEquals(written.useSequence(block) % 1000, written.segment(block));
        }
    }

    @Test
    void pendingBlocksComeBackInOrder() {
        PendingBlocks pending = new PendingBlocks();
        UnsafeBuffer keys = new UnsafeBuffer(new byte[32 * 300]);
        int added = 0;
        int removed = 0;
        for (int round = 0; round < 50; round++) {
            for (int i = 0; i < 300; i++) {
                keys.putInt(i * 32, added + i);
            }
            added += 300;
            pending.add(keys, 0, 300, added);
            int ready = pending.upTo(added - 600); // what was added two rounds ago
            for (int i = 0; i < ready; i++) {
                assertEquals(removed++, pending.keyBuffer().getInt(pending.keyOffset()));
                pending.remove();
            }
        }
        assertEquals(600, pending.size());
        assertEquals(added - 600, removed);
    }
}
