package io.orbitkv.suite;

import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Location;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.suite.CrashLedger.Block;
import io.orbitkv.suite.CrashLedger.Claim;
import io.orbitkv.suite.CrashLedger.Promise;
import io.orbitkv.suite.CrashPrompts.Prompt;
import io.orbitkv.suite.Violation.Kind;
import java.util.HashMap;
import java.util.Map;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** Reads everything that a store has of some families and prompts, and compares every byte. Not thread-safe. */
final class CrashCheck implements AutoCloseable {
    private static final int KEY_BYTES = 32;

    final FamilyHandle[] handles;
    final MemoryRegion memory;
    final Blocks blocks;

    private final CrashFamily[] families;
    private final CrashPrompts prompts;
    private final CrashLedger ledger;
    private KvStore store;
    private long restoredBlocks;
    private long corruptBlocks;
    private Blame blame = (segment, page, bytes) -> false;

    /** Where blocks lay whose bytes the store has found wrong; those of which it may not have told its catalog yet. */
    private final Map<Block, Location> foundWrong = new HashMap<>();

    /** Those that are in quarantine for good. */
    private final Map<Block, Location> quarantined = new HashMap<>();

    /** Says whether a drive that lied may have harmed a block. */
    interface Blame {
        boolean covers(int segment, int page, int bytes);
    }

    CrashCheck(CrashFamily[] families, CrashPrompts prompts, CrashLedger ledger) {
        this.families = families;
        this.prompts = prompts;
        this.ledger = ledger;
        this.handles = new FamilyHandle[families.length];
        int largest = 0;
        for (CrashFamily family : families) {
            largest = Math.max(largest, family.blockBytes());
        }
        memory = MemoryRegion.anonymous((long) CrashPrompts.BLOCKS_MAX * largest, PageKind.SMALL, MemoryPurpose.TOOL);
        blocks = Blocks.of(memory);
    }

    /** Looks at another life of the store from now on. */
    void attach(KvStore opened) {
        store = opened;
        for (CrashFamily family : families) {
            handles[family.number] = opened.openFamily(family.family);
        }
    }

    /** Blocks that were restored and compared so far. */
    long restoredBlocks() {
        return restoredBlocks;
    }

    /** Blocks that a store at rest found and did not return, since the drive had harmed them. */
    long corruptBlocks() {
        return corruptBlocks;
    }

    /** From now on blocks that the drive has harmed need not come back, if the store says that they are corrupt. */
    void blame(Blame drive) {
        blame = drive;
    }

    Location locate(Block block, DirectBuffer keys, int offset) {
        return store.locate(handles[block.family()].shard(block.shard()), keys, offset);
    }

    /** Writes the payloads of some blocks of a prompt to where {@link #blocks} starts. */
    void fill(CrashFamily family, int shard, Prompt prompt, int from, int count) {
        int bytes = family.blockBytes();
        for (int i = 0; i < count; i++) {
            long key = prompt.keys().getLong((from + i) * KEY_BYTES);
            Payload.fill(memory, (long) i * bytes, bytes, key, family.payloadSeed(shard));
        }
    }

    /**
     * Queries keys, restores what is there and compares all bytes.
     *
     * @param atRest whether nothing is being saved, so that everything found must come back
     * @return how many blocks were found on all shards
     */
    int restore(CrashFamily family, DirectBuffer keys, int keysOffset, int count, boolean atRest) {
        try (Lease lease = store.query(handles[family.number], keys, keysOffset, count)) {
            int found = lease.blocks();
            for (int shard = 0; shard < family.shards() && found > 0; shard++) {
                restore(lease, family, shard, keys, keysOffset, 0, found, atRest);
            }
            return found;
        }
    }

    /** Restores blocks of a lease over such keys and compares all bytes; how many came back. */
    int restore(
            Lease lease,
            CrashFamily family,
            int shard,
            DirectBuffer keys,
            int keysOffset,
            int from,
            int count,
            boolean atRest) {
        int bytes = family.blockBytes();
        ShardHandle handle = handles[family.number].shard(shard);
        Location[] before = new Location[atRest ? count : 0];
        for (int i = 0; i < before.length; i++) {
            before[i] = store.locate(handle, keys, keysOffset + (from + i) * KEY_BYTES);
        }
        long corruptBefore = atRest ? store.stats().corruptBlocks() : 0;
        int restored = store.restore(lease, handle, from, count, blocks);
        if (atRest && restored < count) {
            Location at = before[restored];
            if (!blame.covers(at.segment(), at.page(), bytes) || store.stats().corruptBlocks() == corruptBefore) {
                throw new Violation(
                        Kind.LOST,
                        "a store at rest found " + count + " blocks and restored " + restored + "; the next is at "
                                + at);
            }
            corruptBlocks++;
            int key = keysOffset + (from + restored) * KEY_BYTES;
            foundWrong.put(Block.of(family.number, shard, keys, key), at);
        }
        for (int i = 0; i < restored; i++) {
            long key = keys.getLong(keysOffset + (from + i) * KEY_BYTES);
            long difference = Payload.firstDifference(memory, (long) i * bytes, bytes, key, family.payloadSeed(shard));
            if (difference != Payload.NO_DIFFERENCE) {
                throw new Violation(
                        Kind.WRONG, "byte " + difference + " is wrong in block " + i + " of " + count + " restored");
            }
        }
        restoredBlocks += restored;
        return restored;
    }

    /** The store was closed: what it has found wrong is in its catalog. */
    void foundWrongForGood() {
        quarantined.putAll(foundWrong);
        foundWrong.clear();
    }

    /** The store has died: what it has found wrong may be forgotten. */
    void foundWrongInVain() {
        foundWrong.clear();
    }

    /** No block lies where its bytes were found wrong for good. */
    void checkQuarantine(CrashPrompts all, int count) {
        for (int number = 0; number < count && !quarantined.isEmpty(); number++) {
            UnsafeBuffer keys = all.get(number).keys();
            for (int key = 0; key < keys.capacity(); key += KEY_BYTES) {
                for (CrashFamily family : families) {
                    for (int shard = 0; shard < family.shards(); shard++) {
                        checkQuarantine(Block.of(family.number, shard, keys, key), keys, key);
                    }
                }
            }
        }
    }

    private void checkQuarantine(Block block, UnsafeBuffer keys, int key) {
        Location wrong = quarantined.get(block);
        Location at = wrong == null ? null : locate(block, keys, key);
        if (wrong != null
                && at.onDrive()
                && at.segment() == wrong.segment()
                && at.page() == wrong.page()
                && at.useSequence() == wrong.useSequence()) {
            throw new Violation(Kind.OTHER, "a block is back from quarantine: " + block + " at " + at);
        }
    }

    /** Restores and compares every block that was promised, one by one; how many have all their shards. */
    int restorePromised() {
        int found = 0;
        for (Map.Entry<Block, Claim> promised : ledger.claims().entrySet()) {
            CrashFamily family = families[promised.getKey().family()];
            found += restore(family, promised.getValue().key, 0, 1, true);
        }
        return found;
    }

    /** Everything of a prompt that is found, wherever it starts, is right; and is durable from now on. */
    int checkPrompt(CrashFamily family, Prompt prompt) {
        int found = 0;
        for (int from = 0; from < prompt.blocks(); ) {
            int here = restore(family, prompt.keys(), from * KEY_BYTES, prompt.blocks() - from, true);
            found += here;
            from += here + (from + here < prompt.blocks() ? 1 : 0);
        }
        for (int i = 0; i < prompt.blocks(); i++) {
            for (int shard = 0; shard < family.shards(); shard++) {
                int key = i * KEY_BYTES;
                Block block = Block.of(family.number, shard, prompt.keys(), key);
                Location at = locate(block, prompt.keys(), key);
                if (at.onDrive()) {
                    ledger.claim(block, prompt.keys(), key, Promise.DURABLE, 0, at);
                }
            }
        }
        return found;
    }

    /** Whether any block of a family is there, of some prompts. */
    boolean hasAny(CrashFamily family, int firstPrompt, int endPrompt) {
        for (int number = firstPrompt; number < endPrompt; number++) {
            UnsafeBuffer keys = prompts.get(number).keys();
            for (int key = 0; key < keys.capacity(); key += KEY_BYTES) {
                for (int shard = 0; shard < family.shards(); shard++) {
                    if (store.locate(handles[family.number].shard(shard), keys, key)
                            .isStored()) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    @Override
    public void close() {
        memory.close();
    }
}
