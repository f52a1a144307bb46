package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.SyncOutcome;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * A file kept as the blocks of one prompt, by put and get.
 *
 * <pre>
 * block 0: magic "OKVFILE1" | file bytes u64 little-endian | the file's first bytes
 * block i: the bytes that follow; the last block is filled up with zeros
 * </pre>
 *
 * <p>Keys name prompts, not contents, and a stored block never changes: another content needs another prompt.
 */
final class StoredFile implements AutoCloseable {
    static final int HEADER_BYTES = 16;
    private static final long MAGIC = 0x31454c4946564b4fL; // "OKVFILE1", read little-endian
    private static final long BUFFER_BYTES = 8L << 20;
    private static final long SYNC_MILLIS = 60_000;
    private static final int RETRIES_MAX = 50;

    /** Most blocks of a file: what one query may ask for. */
    private static final int BLOCKS_MAX = 1 << 20;

    private final KvStore store;
    private final FamilyHandle family;
    private final ShardHandle shard;
    private final String prompt;
    private final int blockBytes;
    private final int group;
    private final MemoryRegion buffer;
    private final Blocks blocks = Blocks.unset();
    private final byte[] block;
    private PromptKeys keys = new PromptKeys(1);

    private StoredFile(KvStore store, FileOptions options, String prompt) {
        this.store = store;
        this.prompt = prompt;
        blockBytes = (int) options.blockBytes;
        family = store.openFamily(PromptKeys.family("file", options.model, blockBytes));
        shard = family.shard(0);
        group = (int) Math.max(1, BUFFER_BYTES / blockBytes);
        buffer = store.allocate((long) group * blockBytes);
        block = new byte[blockBytes];
    }

    /** Opens the store and aims at a prompt. */
    static StoredFile open(FileOptions options, String prompt) {
        KvStore store = KvStore.open(StoreOptions.inFolders(options.data)
                .poolBytes(options.poolBytes)
                .capBytes(options.capBytes())
                .blockBytesLargest((int) options.blockBytes)
                .queryBlocksMax(BLOCKS_MAX));
        try {
            store.awaitWhole(Long.MAX_VALUE); // who asks once wants to know all
            return new StoredFile(store, options, prompt);
        } catch (RuntimeException e) {
            store.close();
            throw e;
        }
    }

    /** Blocks of a file. */
    int blocksFor(long fileBytes) {
        long count = (fileBytes + HEADER_BYTES + blockBytes - 1) / blockBytes;
        if (count > BLOCKS_MAX) {
            throw new OrbitKvException(
                    ErrorCode.OVER_LIMIT,
                    "a file of " + fileBytes + " bytes is " + count + " blocks of " + blockBytes + "; at most "
                            + BLOCKS_MAX + " are possible, so give larger --block-bytes");
        }
        return (int) count;
    }

    /** Computes the keys of the first blocks. */
    PromptKeys keys(int count) {
        keys = new PromptKeys(count);
        keys.set(prompt, count);
        return keys;
    }

    /** The length of the file that is stored under the prompt; -1 if there is none. */
    long storedBytes() {
        keys(1);
        if (restore(0, 1, (number, bytes) -> {}) == 0) {
            return -1;
        }
        if (buffer.getLong(0) != MAGIC || buffer.getLong(Long.BYTES) < 0) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    "the blocks under this prompt were not stored by 'orbitkv put'; choose another --prompt or --model");
        }
        return buffer.getLong(Long.BYTES);
    }

    /** Takes a restored block. */
    interface Sink {
        void accept(int number, byte[] bytes) throws IOException;
    }

    /**
     * Restores blocks of the prompt, in order, as far as they are there.
     *
     * @param first the first block wanted
     * @param end behind the last one; keys up to it have been computed
     * @param sink takes each; the array is reused
     * @return how many there were
     */
    int restore(int first, int end, Sink sink) {
        try (Lease lease = store.query(family, keys.buffer(), first * PromptKeys.KEY_BYTES, end - first)) {
            int done = 0;
            while (done < lease.blocks()) {
                int wanted = Math.min(group, lease.blocks() - done);
                int got = store.restore(lease, shard, done, wanted, blocks.set(buffer, 0));
                for (int i = 0; i < got; i++) {
                    buffer.copyTo((long) i * blockBytes, block, 0, blockBytes);
                    sink.accept(first + done + i, block);
                }
                done += got;
                if (got < wanted) {
                    break;
                }
            }
            return done;
        } catch (IOException e) {
            throw new OrbitKvException(ErrorCode.FOLDER_UNUSABLE, "cannot write the output file: " + e, e);
        }
    }

    /** Fills an array with a block of the stream that a file becomes. */
    void read(FileChannel file, long fileBytes, int number, byte[] into) throws IOException {
        ByteBuffer view = ByteBuffer.wrap(into).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        long position = (long) number * blockBytes - HEADER_BYTES;
        if (number == 0) {
            view.putLong(MAGIC).putLong(fileBytes);
            position = 0;
        }
        while (view.hasRemaining() && position < fileBytes) {
            int read = file.read(view, position);
            if (read < 0) {
                throw new IOException("the file became shorter while it was read");
            }
            position += read;
        }
        while (view.hasRemaining()) {
            view.put((byte) 0);
        }
    }

    /**
     * Saves blocks of a file; keys have been computed for all of them.
     *
     * @return how many were taken in
     */
    int save(FileChannel file, long fileBytes, int first, int end) throws IOException {
        SaveResult result = new SaveResult();
        int done = first;
        int retries = 0;
        while (done < end) {
            int count = Math.min(group, end - done);
            for (int i = 0; i < count; i++) {
                read(file, fileBytes, done + i, block);
                buffer.copyFrom((long) i * blockBytes, block, 0, blockBytes);
            }
            store.save(
                    shard,
                    done == 0 ? null : keys.buffer(),
                    (done - 1) * PromptKeys.KEY_BYTES,
                    keys.buffer(),
                    done * PromptKeys.KEY_BYTES,
                    count,
                    blocks.set(buffer, 0),
                    result);
            done += result.accepted() + result.present();
            if (result.dropped() > 0 && (++retries > RETRIES_MAX || !sync(Level.WRITTEN))) {
                break; // not taken in: the caller says so
            }
        }
        return done - first;
    }

    /** Waits until everything saved is as safe as asked. */
    boolean sync(Level level) {
        return store.sync(store.acceptedPosition(), level, SYNC_MILLIS) == SyncOutcome.REACHED;
    }

    int blockBytes() {
        return blockBytes;
    }

    @Override
    public void close() {
        store.close();
    }
}
