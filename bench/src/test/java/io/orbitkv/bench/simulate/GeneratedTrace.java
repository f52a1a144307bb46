package io.orbitkv.bench.simulate;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Chats as a trace has them: a few beginnings that many share, conversations that grow turn by turn with a partial block
 * at the end, and some that are asked again from the middle.
 */
final class GeneratedTrace {
    static final int BLOCK_TOKENS = 16;

    /** One request: the ids of its blocks and the tokens of its prompt. */
    record Request(List<Long> ids, int tokens) {}

    private GeneratedTrace() {}

    static List<Request> of(long seed, int requests) {
        SplittableRandom random = new SplittableRandom(seed);
        List<List<Long>> chats = new ArrayList<>();
        List<Request> trace = new ArrayList<>();
        long[] nextId = {1000};
        while (trace.size() < requests) {
            List<Long> chat;
            if (chats.isEmpty() || random.nextInt(3) == 0) {
                chat = new ArrayList<>();
                int beginning = random.nextInt(3);
                for (int i = 0; i <= beginning; i++) {
                    chat.add(10L * beginning + i);
                }
                chats.add(chat);
            } else {
                chat = chats.get(Math.max(0, chats.size() - 1 - random.nextInt(12) * random.nextInt(6)) % chats.size());
            }
            if (random.nextInt(10) == 0 && chat.size() > 3) {
                chat.subList(chat.size() / 2, chat.size()).clear();
            }
            for (int more = 1 + random.nextInt(8); more > 0; more--) {
                chat.add(nextId[0]++);
            }
            trace.add(request(chat, random, nextId));
            if (chat.size() > 40) {
                chats.remove(chat);
            }
        }
        return trace;
    }

    private static Request request(List<Long> chat, SplittableRandom random, long[] nextId) {
        List<Long> ids = new ArrayList<>(chat);
        int tokens = ids.size() * BLOCK_TOKENS;
        if (random.nextBoolean()) { // the next turn fills this block up, and its id will be another
            ids.add(nextId[0]++);
            tokens += 1 + random.nextInt(BLOCK_TOKENS - 1);
        }
        return new Request(ids, tokens);
    }

    static KeyTrace keys(List<Request> trace) {
        KeyTrace.Builder builder = new KeyTrace.Builder();
        for (Request request : trace) {
            request.ids.forEach(builder::block);
            builder.endRequest(request.tokens);
        }
        return builder.build(BLOCK_TOKENS);
    }
}
