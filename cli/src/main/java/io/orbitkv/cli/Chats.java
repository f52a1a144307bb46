package io.orbitkv.cli;

import java.util.SplittableRandom;

/**
 * Generates multi-turn chats: users that take turns in random order, system prompts that many of them share,
 * conversations that grow turn by turn, fork where a user edits an earlier turn, and start again when they are long.
 *
 * <p>A function of seed and sizes. Their number is chosen so that all conversations together need more blocks than the
 * pool holds and fewer than the cap: most hits then come from the drive, before a restart and after it.
 */
final class Chats {
    private static final int SYSTEM_PROMPTS = 4;
    private static final int SYSTEM_BLOCKS = 8;
    private static final int TURN_BLOCKS_MIN = 2;
    private static final int TURN_BLOCKS_MAX = 8;
    private static final int CONVERSATION_BLOCKS_MAX = 96;
    private static final int CONVERSATION_BLOCKS_MEAN = (SYSTEM_BLOCKS + CONVERSATION_BLOCKS_MAX) / 2;
    private static final double FORKS = 0.08; // share of the turns that edit an earlier one
    private static final int USERS_MIN = 4;
    private static final int USERS_MAX = 4096;

    private final SplittableRandom random;
    private final long[][] conversations;
    private final int[] lengths;
    private final Workload.Builder workload = new Workload.Builder();
    private long nextId = SYSTEM_PROMPTS * SYSTEM_BLOCKS;

    private Chats(long seed, int users) {
        random = new SplittableRandom(seed);
        conversations = new long[users][CONVERSATION_BLOCKS_MAX];
        lengths = new int[users];
        for (int user = 0; user < users; user++) {
            begin(user);
        }
    }

    /**
     * Generates requests.
     *
     * @param seed the same seed gives the same requests
     * @param requests how many
     * @param poolBlocks blocks that host memory holds
     * @param capBlocks blocks that the drive holds
     */
    static Workload generate(long seed, int requests, long poolBlocks, long capBlocks) {
        long live = Math.min(3 * poolBlocks, capBlocks / 2);
        int users = (int) Math.max(USERS_MIN, Math.min(USERS_MAX, live / CONVERSATION_BLOCKS_MEAN));
        Chats chats = new Chats(seed, users);
        for (int i = 0; i < requests; i++) {
            chats.turn(chats.random.nextInt(users));
        }
        return chats.workload.build();
    }

    /** One user says something: the request is the whole conversation up to here. */
    private void turn(int user) {
        int added = random.nextInt(TURN_BLOCKS_MIN, TURN_BLOCKS_MAX + 1);
        if (random.nextDouble() < FORKS && lengths[user] > SYSTEM_BLOCKS) {
            lengths[user] = random.nextInt(SYSTEM_BLOCKS, lengths[user]);
        }
        if (lengths[user] + added > CONVERSATION_BLOCKS_MAX) {
            begin(user);
        }
        for (int i = 0; i < added; i++) {
            conversations[user][lengths[user]++] = nextId++;
        }
        for (int i = 0; i < lengths[user]; i++) {
            workload.block(conversations[user][i]);
        }
        workload.endRequest();
    }

    private void begin(int user) {
        long first = (long) random.nextInt(SYSTEM_PROMPTS) * SYSTEM_BLOCKS;
        for (int i = 0; i < SYSTEM_BLOCKS; i++) {
            conversations[user][i] = first + i;
        }
        lengths[user] = SYSTEM_BLOCKS;
    }
}
