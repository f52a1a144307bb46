package io.orbitkv.cli;

import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.ShardHandle;
import java.util.HashSet;
import java.util.Set;

/** Counts dead weight: blocks that are stored while a block before them is not, so that no query from the start finds them. */
final class Unreachable {
    private Unreachable() {}

    /** Bytes of whole pages of the blocks of a workload that are stored and can't be reached. */
    static long bytes(KvStore store, ShardHandle shard, Workload workload) {
        PromptKeys keys = new PromptKeys(workload.longest());
        Set<Long> counted = new HashSet<>();
        for (int request = 0; request < workload.requests(); request++) {
            keys.set(workload, request);
            boolean broken = false;
            for (int block = 0; block < workload.blocks(request); block++) {
                boolean stored = store.locate(shard, keys.buffer(), block * PromptKeys.KEY_BYTES)
                        .isStored();
                if (stored && broken) {
                    counted.add(keys.head(block));
                }
                broken |= !stored;
            }
        }
        return counted.size() * (long) Extent.pages(shard.blockBytes()) * MemoryRegion.PAGE_BYTES;
    }
}
