package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.orbitkv.index.Family;
import io.orbitkv.kit.Gen;
import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.SaveResult.DropReason;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * One shard of a family beside its model: a set of the keys that were accepted. The bytes that belong to a key are a
 * function of the key and the shard, so every restored byte can be judged; a restore of another shard's, another key's
 * or an older block fails. One user at a time; several may share the model.
 */
final class Modelled implements AutoCloseable {
    /** The keys that a shard's store was given, in whatever order and by whatever thread. */
    static final class Model {
        private final Map<String, Boolean> accepted = new ConcurrentHashMap<>();

        Set<String> keys() {
            return accepted.keySet();
        }

        /** How many consecutive blocks of the prompt the model has from one on. */
        int length(Prompt prompt, int from) {
            int end = from;
            while (end < prompt.blocks() && accepted.containsKey(prompt.key(end))) {
                end++;
            }
            return end - from;
        }
    }

    final KvStore store;
    final ShardHandle shard;
    final Model model;
    final SaveResult result = new SaveResult();
    private final long payloadSeed;
    private final int blockBytes;
    private final MemoryRegion memory;
    private final Blocks blocks = Blocks.unset();

    Modelled(KvStore store, ShardHandle shard, Model model, int blocksMax) {
        this.store = store;
        this.shard = shard;
        this.model = model;
        this.payloadSeed = Gen.mix(shard.namespace().id64());
        this.blockBytes = shard.blockBytes();
        this.memory = MemoryRegion.anonymous((long) blocksMax * blockBytes, PageKind.SMALL, MemoryPurpose.TOOL);
    }

    static Family.Builder family(int blockBytes) {
        return Family.builder()
                .modelId("test-model")
                .weightsDigest(new byte[32])
                .tokenizerDigest(new byte[32])
                .kvDtype("bf16")
                .layout("BLNHC".getBytes(StandardCharsets.US_ASCII))
                .blockBytes(blockBytes)
                .blockTokens(Prompt.BLOCK_TOKENS)
                .engine("test")
                .hash("sha256", "0")
                .scope("test");
    }

    /** Saves blocks {@code from} to {@code from + count} of a prompt, with the key before them as parent. */
    SaveResult save(Prompt prompt, int from, int count) {
        for (int i = 0; i < count; i++) {
            Payload.fill(memory, (long) i * blockBytes, blockBytes, prompt.key0(from + i), payloadSeed);
        }
        store.save(
                shard,
                from == 0 ? null : prompt.keys,
                from == 0 ? 0 : Prompt.keyOffset(from - 1),
                prompt.keys,
                Prompt.keyOffset(from),
                count,
                blocks.set(memory, 0),
                result);
        // The source is the caller's again: what it does with it must not matter.
        memory.fill(0, (long) count * blockBytes, (byte) 0xEE);
        int stored = result.present() + result.accepted();
        assertEquals(count, stored + result.dropped(), result::toString);
        assertEquals(result.dropped() == 0, result.reason() == DropReason.NONE, result::toString);
        for (int i = 0; i < stored; i++) {
            model.accepted.put(prompt.key(from + i), true);
        }
        return result;
    }

    /** Saves, waiting for the drive where it is behind, until all is in. */
    void saveAll(Prompt prompt, int from, int count) {
        int done = 0;
        for (int attempt = 0; done < count; attempt++) {
            save(prompt, from + done, count - done);
            done += result.present() + result.accepted();
            if (done < count) {
                if (attempt > 10_000) {
                    throw new AssertionError("saves are refused for good: " + result + ", " + store.stats());
                }
                store.sync(store.acceptedPosition(), Level.WRITTEN, 20_000);
            }
        }
    }

    /**
     * Asks for blocks from one on and restores what is leased, in pieces of any size; every byte is judged.
     *
     * @return how many blocks came back
     */
    int restore(Prompt prompt, int from, int count, Gen gen) {
        try (Lease lease = store.query(shard.family(), prompt.keys, Prompt.keyOffset(from), count)) {
            int leased = lease.blocks();
            int done = 0;
            while (done < leased) {
                int piece = gen.between(1, leased - done);
                memory.fill(0, (long) piece * blockBytes, (byte) 0xDD);
                int restored = store.restore(lease, shard, done, piece, blocks.set(memory, 0));
                judge(prompt, from + done, restored);
                done += restored;
                if (restored < piece) {
                    break;
                }
            }
            return done;
        }
    }

    private void judge(Prompt prompt, int from, int count) {
        for (int i = 0; i < count; i++) {
            long at = Payload.firstDifference(
                    memory, (long) i * blockBytes, blockBytes, prompt.key0(from + i), payloadSeed);
            assertEquals(Payload.NO_DIFFERENCE, at, "wrong bytes in block " + (from + i));
        }
    }

    /** Waits until everything that was accepted is written. */
    void written() {
        assertEquals(SyncOutcome.REACHED, store.sync(store.acceptedPosition(), Level.WRITTEN, 20_000));
    }

    @Override
    public void close() {
        memory.close();
    }
}
