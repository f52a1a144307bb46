package io.orbitkv.suite;

import io.orbitkv.kit.Gen;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Level;
import io.orbitkv.store.Location;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.SyncOutcome;
import io.orbitkv.suite.CrashLedger.Block;
import io.orbitkv.suite.CrashPrompts.Prompt;
import io.orbitkv.tiers.EvictionPolicy;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.List;
import java.util.stream.Stream;

/**
 * The process that is killed: saves prompts as fast as it can and tells its parent, through standard output, what the
 * store has promised, and through a shared page, which crash windows it is inside of. It never ends by itself.
 *
 * <pre>
 * arguments: folders, file of the shared page, seed, first prompt, clears of each family so far ...
 * shared page: one int a {@link CrashWindow}: how many are open
 * frames: 'O' about to open | 'R' ready | 'P' prompt i32: about to be saved | 'C' family i32: about to be cleared
 *         | 'D' family i32: cleared | 'A' family i32, shard i32, key 32 bytes, position i64, segment i32, use-sequence i64
 * </pre>
 */
final class KillChild {
    private static final int CLEAR_ONE_IN = 60;
    private static final int DURABLE_ONE_IN = 50;
    private static final int USED_PROMPTS = 400;
    private static final int KEY_BYTES = 32;
    private static final long SYNC_MILLIS = 60_000;

    private final DataOutputStream out;
    private final CrashFamily[] families = KillHarness.families();
    private final CrashPrompts prompts;
    private final Gen gen;
    private final CrashCheck check;
    private final SaveResult saved = new SaveResult();
    private final ArrayDeque<Unsettled> unsettled = new ArrayDeque<>();
    private KvStore store;

    /** A prompt of which blocks were accepted up to a position. */
    private record Unsettled(CrashFamily family, int clears, Prompt prompt, int blocks, long position) {}

    private KillChild(long seed, int firstPrompt, DataOutputStream out) {
        this.out = out;
        this.prompts = new CrashPrompts(seed);
        this.gen = new Gen(Gen.mix(seed ^ firstPrompt));
        this.check = new CrashCheck(families, prompts, new CrashLedger(families));
    }

    /** Started by {@link KillHarness}. */
    public static void main(String[] arguments) throws IOException {
        DataOutputStream out =
                new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        System.setOut(System.err); // whoever logs must not write into the frames
        int firstPrompt = Integer.parseInt(arguments[3]);
        KillChild child = new KillChild(Long.parseLong(arguments[2]), firstPrompt, out);
        for (CrashFamily family : child.families) {
            family.clears = Integer.parseInt(arguments[4 + family.number]);
        }
        List<Path> folders =
                Stream.of(arguments[0].split(File.pathSeparator)).map(Path::of).toList();
        MemoryRegion page = MemoryRegion.sharedFile(arguments[1], MemoryRegion.PAGE_BYTES);
        out.write('O');
        out.flush();
        child.run(folders, page, firstPrompt);
    }

    private void run(List<Path> folders, MemoryRegion page, int firstPrompt) throws IOException {
        store = KvStore.open(KillHarness.options(folders, probe(page)).policy(policy(firstPrompt)));
        check.attach(store);
        out.write('R');
        for (int number = firstPrompt; ; number++) {
            save(number);
            acknowledge();
            use(Math.max(0, number - USED_PROMPTS), number);
            if (gen.below(CLEAR_ONE_IN) == 0) {
                clear(families[KillHarness.CLEARED_FAMILY]);
            }
            if (gen.below(DURABLE_ONE_IN) == 0) {
                store.sync(store.acceptedPosition(), Level.DURABLE, SYNC_MILLIS);
                acknowledge();
            }
            out.flush();
        }
    }

    /** Mostly the one that moves blocks. */
    private static EvictionPolicy policy(int firstPrompt) {
        return firstPrompt % 4 == 3 ? EvictionPolicy.SEGMENT_LRU : EvictionPolicy.SECOND_CHANCE;
    }

    private static WindowProbe probe(MemoryRegion page) {
        return new WindowProbe() {
            @Override
            public void enter(CrashWindow window) {
                page.getAndAddInt((long) window.ordinal() * Integer.BYTES, 1);
            }

            @Override
            public void leave(CrashWindow window) {
                page.getAndAddInt((long) window.ordinal() * Integer.BYTES, -1);
            }
        };
    }

    private void save(int number) throws IOException {
        out.write('P');
        out.writeInt(number);
        out.flush(); // whatever of it the parent finds, it knows the keys
        CrashFamily family = KillHarness.familyOf(families, number);
        Prompt prompt = prompts.get(number);
        int blocks = prompt.blocks();
        for (int shard = 0; shard < family.shards(); shard++) {
            check.fill(family, shard, prompt, 0, prompt.blocks());
            store.save(
                    check.handles[family.number].shard(shard),
                    null,
                    0,
                    prompt.keys(),
                    0,
                    prompt.blocks(),
                    check.blocks,
                    saved);
            blocks = Math.min(blocks, saved.present() + saved.accepted());
            if (saved.dropped() > 0
                    && store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS) != SyncOutcome.REACHED) {
                throw new IllegalStateException("the log is stuck: " + store.stats());
            }
        }
        unsettled.add(new Unsettled(family, family.clears, prompt, blocks, store.acceptedPosition()));
    }

    /** Passes on what the store says: blocks up to the written position are on the drive, here. */
    private void acknowledge() throws IOException {
        long written = store.writtenPosition();
        while (!unsettled.isEmpty() && unsettled.peek().position <= written) {
            Unsettled next = unsettled.remove();
            if (next.clears != next.family.clears) {
                continue;
            }
            for (int shard = 0; shard < next.family.shards(); shard++) {
                for (int i = 0; i < next.blocks; i++) {
                    acknowledge(next, shard, i);
                }
            }
        }
    }

    private void acknowledge(Unsettled of, int shard, int i) throws IOException {
        int key = i * KEY_BYTES;
        Block block = Block.of(of.family.number, shard, of.prompt.keys(), key);
        Location at = check.locate(block, of.prompt.keys(), key);
        // Looked at twice: between the look at the index and the look at the segment it may be put to use again.
        if (at.onDrive() && at.equals(check.locate(block, of.prompt.keys(), key))) {
            out.write('A');
            out.writeInt(of.family.number);
            out.writeInt(shard);
            out.write(of.prompt.keys().byteArray(), key, KEY_BYTES);
            out.writeLong(of.position);
            out.writeInt(at.segment());
            out.writeLong(at.useSequence());
        }
    }

    /** Restores some earlier prompt, so that its blocks are moved before their segments go, and says where they lie now. */
    private void use(int first, int end) throws IOException {
        int number = first + gen.below(end - first + 1);
        CrashFamily family = KillHarness.familyOf(families, number);
        Prompt prompt = prompts.get(number);
        check.restore(family, prompt.keys(), 0, prompt.blocks(), false);
        for (int shard = 0; shard < family.shards(); shard++) {
            for (int i = 0; i < prompt.blocks(); i++) {
                acknowledge(new Unsettled(family, family.clears, prompt, prompt.blocks(), 0), shard, i);
            }
        }
    }

    private void clear(CrashFamily family) throws IOException {
        out.write('C');
        out.writeInt(family.number);
        out.flush();
        store.clear(check.handles[family.number]);
        family.clears++;
        out.write('D');
        out.writeInt(family.number);
        out.flush();
    }
}
