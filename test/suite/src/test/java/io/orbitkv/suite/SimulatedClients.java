package io.orbitkv.suite;

import io.orbitkv.kit.Gen;
import io.orbitkv.kit.SimulatedClock;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.suite.CrashLedger.Block;
import io.orbitkv.suite.CrashPrompts.Prompt;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Clients that save, query, restore, clear and sync side by side, on prompts that share prefixes. A client may hold what it
 * was leased while others go on, and restores it piece by piece. Not thread-safe: their calls interleave, one at a time.
 */
final class SimulatedClients {
    private static final int KEY_BYTES = 32;
    private static final int STEPS_MAX = 40;
    private static final long SYNC_MILLIS = 120_000;
    private static final long PAUSE_NANOS = 60_000_000;
    private static final int PIECE_BLOCKS_MAX = 6;

    /** About as many as a small log holds. */
    private static final int USED_AGAIN_PROMPTS = 60;

    /** What the run does beside the clients' calls. */
    interface Run {
        /** A family is about to be cleared, or, with -1, has been. */
        void clearing(int family);

        /** The cap may be changed now. */
        void changeCap();

        /** Everything that was acknowledged so far is to be written down. */
        void acknowledge();
    }

    /** What a client holds. */
    private record Held(Lease lease, CrashFamily family, Prompt prompt, int from) {}

    private final Gen gen;
    private final Gen choices;
    private final Held[] held;
    private final CrashFamily[] families;
    private final CrashPrompts prompts;
    private final CrashCheck check;
    private final CrashLedger ledger;
    private final DriveModel drive;
    private final SimulatedClock clock;
    private final SimulationTotals totals;
    private final Consumer<String> events;
    private final SaveResult saved = new SaveResult();
    private int operationsLeft;
    private int promptsSaved;
    private KvStore store;

    SimulatedClients(
            Gen gen,
            FaultMix mix,
            int operations,
            CrashFamily[] families,
            CrashPrompts prompts,
            CrashCheck check,
            CrashLedger ledger,
            DriveModel drive,
            SimulatedClock clock,
            SimulationTotals totals,
            Consumer<String> events) {
        this.gen = gen;
        this.choices = mix.choices();
        this.held = new Held[mix.clients()];
        this.operationsLeft = operations;
        this.families = families;
        this.prompts = prompts;
        this.check = check;
        this.ledger = ledger;
        this.drive = drive;
        this.clock = clock;
        this.totals = totals;
        this.events = events;
    }

    /** Prompts that were used so far: numbers from 0. */
    int promptsSaved() {
        return promptsSaved;
    }

    /** So many operations on a store that is open, with steps of its agents in between. */
    void work(KvStore open, int operations, Run run) {
        store = open;
        for (int i = 0; i < operations && operationsLeft > 0; i++, operationsLeft--) {
            int client = held.length == 1 ? 0 : choices.below(held.length);
            if (held[client] != null && choices.coin()) {
                restorePiece(client);
            } else if (held.length > 1 && promptsSaved > 0) {
                useAgain();
            }
            operate(client, run);
            for (int step = gen.below(STEPS_MAX); step > 0; step--) {
                store.step();
            }
            run.acknowledge();
            totals.operations++;
        }
    }

    private void operate(int client, Run run) {
        int choice = gen.below(100);
        if (choice < 52) {
            save();
        } else if (choice < 70) {
            query(client);
        } else if (choice < 78) {
            sync(Level.WRITTEN);
        } else if (choice < 86) {
            sync(Level.DURABLE);
        } else if (choice < 88) {
            clear(run);
        } else if (choice < 92) {
            clock.advance(PAUSE_NANOS);
        } else if (choice < 94) {
            run.changeCap();
        }
    }

    /** A new prompt, or one from before: its blocks from a random one on, as an engine saves those it computed. */
    private void save() {
        CrashFamily family = gen.pick(families);
        int number = gen.below(5) == 0 && promptsSaved > 0 ? gen.below(promptsSaved) : promptsSaved++;
        Prompt prompt = prompts.get(number);
        int from = gen.coin() ? prompt.firstOwn() : gen.below(prompt.blocks());
        int count = gen.below(4) == 0 ? 1 : prompt.blocks() - from;
        for (int shard = 0; shard < family.shards(); shard++) {
            if (gen.below(20) == 0) {
                continue; // a rank that was too slow: the family has no hit on these blocks
            }
            saveShard(family, shard, prompt, from, count);
        }
    }

    private void saveShard(CrashFamily family, int shard, Prompt prompt, int from, int count) {
        ShardHandle handle = check.handles[family.number].shard(shard);
        boolean[] stored = new boolean[count];
        for (int i = 0; i < count; i++) {
            int key = (from + i) * KEY_BYTES;
            stored[i] = store.locate(handle, prompt.keys(), key).isStored();
        }
        check.fill(family, shard, prompt, from, count);
        store.save(
                handle,
                from == 0 ? null : prompt.keys(),
                Math.max(0, from - 1) * KEY_BYTES,
                prompt.keys(),
                from * KEY_BYTES,
                count,
                check.blocks,
                saved);
        events.accept(
                "save " + family.number + "/" + shard + " from " + from + " of " + prompt.blocks() + ": " + saved);
        for (int i = 0; i < saved.present() + saved.accepted(); i++) {
            if (!stored[i] && saved.accepted() > 0) {
                int key = (from + i) * KEY_BYTES;
                Block block = Block.of(family.number, shard, prompt.keys(), key);
                ledger.accepted(block, prompt.keys(), key, saved.position());
            }
        }
        totals.savedBlocks += saved.accepted();
    }

    private void query(int client) {
        if (promptsSaved == 0) {
            return;
        }
        Prompt prompt = prompts.get(gen.below(promptsSaved));
        int from = gen.below(prompt.blocks());
        CrashFamily family = gen.pick(families);
        int count = prompt.blocks() - from;
        String what = "query " + family.number + " from " + from + ": ";
        if (held.length > 1 && held[client] == null && choices.coin()) {
            Lease lease = store.query(check.handles[family.number], prompt.keys(), from * KEY_BYTES, count);
            held[client] = new Held(lease, family, prompt, from);
            events.accept("client " + client + " holds, " + what + lease.blocks());
            return;
        }
        events.accept(what + check.restore(family, prompt.keys(), from * KEY_BYTES, count, false));
    }

    /** A block or two of a prompt that is not the newest: the log appends what is used again before its segment goes. */
    private void useAgain() {
        Prompt prompt = prompts.get(promptsSaved - 1 - choices.below(Math.min(promptsSaved, USED_AGAIN_PROMPTS)));
        CrashFamily family = families[choices.below(families.length)];
        int from = choices.below(prompt.blocks());
        int count = Math.min(prompt.blocks() - from, choices.between(1, 2));
        int found = check.restore(family, prompt.keys(), from * KEY_BYTES, count, false);
        events.accept("uses " + family.number + " from " + from + ": " + found + " of " + count);
    }

    /** Some blocks of what a client holds; what others did meanwhile may make that fewer, never wrong ones. */
    private void restorePiece(int client) {
        Held now = held[client];
        int leased = now.lease.blocks();
        if (leased > 0) {
            int first = choices.below(leased);
            int count = Math.min(leased - first, choices.between(1, PIECE_BLOCKS_MAX));
            int shard = choices.below(now.family.shards());
            int keys = now.from * KEY_BYTES;
            int restored = check.restore(now.lease, now.family, shard, now.prompt.keys(), keys, first, count, false);
            events.accept(
                    "client " + client + " restores " + count + " from " + first + " of " + leased + ": " + restored);
        }
        if (leased == 0 || choices.below(3) == 0) {
            now.lease.close();
            held[client] = null;
        }
    }

    private void sync(Level level) {
        long position = store.acceptedPosition();
        var outcome = store.sync(position, level, SYNC_MILLIS);
        events.accept("sync " + level + " " + position + ": " + outcome);
        drive.checkSync(outcome);
    }

    private void clear(Run run) {
        CrashFamily family = gen.pick(families);
        events.accept("clear " + family.number);
        run.clearing(family.number);
        store.clear(check.handles[family.number]);
        run.clearing(-1);
        totals.clears++;
    }

    /** The store is about to be closed. */
    void giveUpLeases() {
        for (int client = 0; client < held.length; client++) {
            if (held[client] != null) {
                held[client].lease.close();
                held[client] = null;
            }
        }
    }

    /** The store is dead, and what it had leased with it. */
    void forgetLeases() {
        Arrays.fill(held, null);
    }
}
