package io.orbitkv.suite;

import io.orbitkv.index.Family;
import io.orbitkv.kit.Payload;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.Location;
import io.orbitkv.store.SaveResult;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import org.agrona.concurrent.UnsafeBuffer;

/** Blocks of one family, each a prompt of its own, whose keys and bytes follow from family and number. */
final class NumberedBlocks {
    static final int BLOCK_BYTES = 16 << 10;

    private static final long SEED = 5;
    private static final long SYNC_MILLIS = 60_000;

    /** What a look at a block finds. */
    enum Found {
        NOTHING,
        ITS_BYTES,
        OTHER_BYTES
    }

    private final KvStore store;
    private final int family;
    private final FamilyHandle handle;
    private final MemoryRegion memory;
    private final Blocks place = Blocks.unset();
    private final UnsafeBuffer key = new UnsafeBuffer(new byte[32]);
    private final SaveResult result = new SaveResult();

    NumberedBlocks(KvStore store, int family) {
        this.store = store;
        this.family = family;
        this.handle = store.openFamily(family(family));
        this.memory = store.allocate(BLOCK_BYTES);
    }

    static Family family(int number) {
        return Family.builder()
                .modelId("numbered-" + number)
                .fingerprint("numbered-" + number)
                .tokenizerDigest(new byte[] {1})
                .kvDtype("bytes")
                .layout("bytes".getBytes(StandardCharsets.US_ASCII))
                .engine("test")
                .hash("numbers", "")
                .blockBytes(BLOCK_BYTES)
                .blockTokens(16)
                .build();
    }

    FamilyHandle handle() {
        return handle;
    }

    UnsafeBuffer key(int number) {
        SplittableRandom random = new SplittableRandom(((long) family << 32) + number);
        for (int i = 0; i < 32; i += Long.BYTES) {
            key.putLong(i, random.nextLong());
        }
        return key;
    }

    /** Saves blocks, and waits for the drive where it is behind. */
    void save(int from, int to) {
        for (int number = from; number < to; number++) {
            key(number);
            Payload.fill(memory, 0, BLOCK_BYTES, key.getLong(0), SEED);
            do {
                store.save(handle.shard(0), null, 0, key, 0, 1, place.set(memory, 0), result);
            } while (result.dropped() > 0 && store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS) != null);
        }
    }

    Found look(int number) {
        key(number);
        try (Lease lease = store.query(handle, key, 0, 1)) {
            if (lease.blocks() == 0 || store.restore(lease, handle.shard(0), 0, 1, place.set(memory, 0)) == 0) {
                return Found.NOTHING;
            }
            long difference = Payload.firstDifference(memory, 0, BLOCK_BYTES, key.getLong(0), SEED);
            return difference == Payload.NO_DIFFERENCE ? Found.ITS_BYTES : Found.OTHER_BYTES;
        }
    }

    Location locate(int number) {
        return store.locate(handle.shard(0), key(number), 0);
    }
}
