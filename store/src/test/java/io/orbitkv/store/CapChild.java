package io.orbitkv.store;

import io.orbitkv.kit.Gen;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * A process that owns a store and does what its parent says, line by line; each line is answered with one.
 *
 * <pre>
 * arguments: folder, cap in bytes (0: the store's own)
 * answers:   first "open PREALLOCATED-BYTES WHOLE USED-SEGMENTS FREE-SEGMENTS"
 * save BYTES          -> saved SEGMENTS-REUSED CONDITION
 * cap BYTES MILLIS    -> cap WITHIN CONDITION OWN FOREIGN
 * stats               -> stats OWN FOREIGN CONDITION
 * close               -> closed, and ends
 * </pre>
 */
final class CapChild {
    static final int BLOCK_BYTES = 64 << 10;
    private static final int PROMPT_BLOCKS = 64;

    private final KvStore store;
    private final ShardHandle shard;
    private final Gen gen = new Gen(System.nanoTime());
    private final SaveResult result = new SaveResult();
    private final MemoryRegion memory =
            MemoryRegion.anonymous((long) PROMPT_BLOCKS * BLOCK_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    private final Blocks blocks = Blocks.unset();

    private CapChild(KvStore store) {
        this.store = store;
        this.shard = store.openFamily(Modelled.family(BLOCK_BYTES).build()).shard(0);
        blocks.set(memory, 0);
    }

    static StoreOptions options(Path folder, long capBytes) {
        return WholeStore.optionsIn(folder)
                .poolBytes(32 << 20)
                .capBytes(capBytes)
                .blockBytesLargest(BLOCK_BYTES)
                .pageKind(PageKind.SMALL);
    }

    public static void main(String[] arguments) throws IOException {
        KvStore store = WholeStore.open(options(Path.of(arguments[0]), Long.parseLong(arguments[1])));
        CapChild child = new CapChild(store);
        var accounting = store.openReport().accounting();
        answer("open " + accounting.preallocatedPages() * MemoryRegion.PAGE_BYTES + " " + accounting.isWhole() + " "
                + accounting.segmentsUsed() + " " + accounting.segmentsFree());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            answer(child.obey(words));
            if (words[0].equals("close")) {
                return;
            }
        }
    }

    private static void answer(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private String obey(String[] words) {
        switch (words[0]) {
            case "save":
                save(Long.parseLong(words[1]));
                StoreStats saved = store.stats();
                return "saved " + saved.nvmeSegmentsReused() + " " + saved.capCondition();
            case "cap":
                CapState state = store.capBytes(Long.parseLong(words[1]), Long.parseLong(words[2]));
                return "cap " + state.isWithin() + " " + state.condition() + " " + state.ownBytes() + " "
                        + state.foreignBytes();
            case "stats":
                StoreStats stats = store.stats();
                return "stats " + stats.ownBytes() + " " + stats.foreignBytes() + " " + stats.capCondition();
            case "close":
                store.close();
                return "closed";
            default:
                return "unknown";
        }
    }

    private void save(long bytes) {
        for (long done = 0; done < bytes; ) {
            Prompt prompt = Prompt.random(gen, PROMPT_BLOCKS);
            memory.putLong(0, gen.nextLong());
            store.save(shard, null, 0, prompt.keys, 0, PROMPT_BLOCKS, blocks, result);
            done += (long) result.accepted() * BLOCK_BYTES;
            if (result.dropped() > 0) {
                store.sync(store.acceptedPosition(), Level.WRITTEN, 60_000);
            }
        }
        store.sync(store.acceptedPosition(), Level.WRITTEN, 5_000);
    }
}
