package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/**
 * Goal: generated chats are a function of their seed, share prefixes as chats do, and name blocks so that equal numbers
 * mean equal prefixes.
 * Method: generate twice, and look at every pair of neighbours in every request.
 */
class ChatsTest {
    private static final long POOL_BLOCKS = 1024;
    private static final long CAP_BLOCKS = 8192;

    @Test
    void sameSeedSameRequests() {
        assertEquals(text(3), text(3));
        assertTrue(!text(3).equals(text(4)), "two seeds gave the same chats");
    }

    @Test
    void everyBlockHasOneParent() {
        Workload chats = Chats.generate(7, 1200, POOL_BLOCKS, CAP_BLOCKS);
        Map<Long, Long> parents = new HashMap<>();
        for (int request = 0; request < chats.requests(); request++) {
            long parent = -1;
            for (int block = 0; block < chats.blocks(request); block++) {
                long id = chats.id(request, block);
                long before = parent;
                assertEquals(before, parents.computeIfAbsent(id, unused -> before), "parent of block " + id);
                parent = id;
            }
        }
    }

    @Test
    void needsMoreThanThePoolAndReusesMuch() {
        Workload chats = Chats.generate(1, 1200, POOL_BLOCKS, CAP_BLOCKS);
        Set<Long> unique = new HashSet<>();
        for (int request = 0; request < chats.requests(); request++) {
            for (int block = 0; block < chats.blocks(request); block++) {
                unique.add(chats.id(request, block));
            }
        }
        assertEquals(1200, chats.requests());
        assertTrue(unique.size() > 2 * POOL_BLOCKS, "only " + unique.size() + " blocks");
        assertTrue(unique.size() < CAP_BLOCKS, unique.size() + " blocks");
        assertTrue(chats.blocks() > 5L * unique.size(), chats.blocks() + " references to " + unique.size());
    }

    private static String text(long seed) {
        Workload chats = Chats.generate(seed, 200, POOL_BLOCKS, CAP_BLOCKS);
        StringBuilder text = new StringBuilder();
        for (int request = 0; request < chats.requests(); request++) {
            for (int block = 0; block < chats.blocks(request); block++) {
                text.append(chats.id(request, block)).append(' ');
            }
            text.append('\n');
        }
        return text.toString();
    }
}
