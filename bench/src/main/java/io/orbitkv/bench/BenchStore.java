package io.orbitkv.bench;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Level;
import io.orbitkv.store.ShardHandle;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.SyncOutcome;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;

/** A store of one block size in a folder of its own, with fresh keys; removed when it is closed. */
final class BenchStore implements AutoCloseable {
    static final int KEY_BYTES = 32;
    private static final long SYNC_MILLIS = 60_000;

    final Path folder;
    final KvStore store;
    final ShardHandle shard;
    final FamilyHandle family;
    private final SplittableRandom random;

    private BenchStore(Path folder, KvStore store, FamilyHandle family, long seed) {
        this.folder = folder;
        this.store = store;
        this.family = family;
        shard = family.shard(0);
        random = new SplittableRandom(seed);
    }

    /** Opens a fresh store in a new folder below the given one. */
    static BenchStore open(Path parent, int blockBytes, long poolBytes, long capBytes, int segmentBytes, long seed) {
        return open(
                parent,
                blockBytes,
                seed,
                folder -> StoreOptions.in(folder)
                        .poolBytes(poolBytes)
                        .capBytes(capBytes)
                        .segmentBytes(segmentBytes)
                        .blockBytesLargest(blockBytes));
    }

    /** Opens a fresh store with options that are made for its folder. */
    static BenchStore open(Path parent, int blockBytes, long seed, Function<Path, StoreOptions> options) {
        Path folder = newFolder(parent);
        KvStore store = null;
        try {
            // Blocks stay in the tier that is measured.
            store = KvStore.open(options.apply(folder).promotionBytesMax(0));
            FamilyHandle family = store.openFamily(Family.builder()
                    .modelId("bench")
                    .fingerprint("bench")
                    .tokenizerDigest(new byte[] {0})
                    .kvDtype("bytes")
                    .layout("bytes".getBytes(StandardCharsets.US_ASCII))
                    .engine("orbitkv-bench")
                    .hash("random", "")
                    .blockBytes(blockBytes)
                    .blockTokens(1)
                    .build());
            return new BenchStore(folder, store, family, seed);
        } catch (RuntimeException e) {
            if (store != null) {
                store.close();
            }
            delete(folder);
            throw e;
        }
    }

    /** Makes a folder that nobody else has. */
    static Path newFolder(Path parent) {
        try {
            return Files.createTempDirectory(parent, "orbitkv-bench-");
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot make a folder in " + parent + ": " + e + "; see --data", e);
        }
    }

    /** Keys that were never used before. */
    UnsafeBuffer freshKeys(int count) {
        byte[] keys = new byte[count * KEY_BYTES];
        random.nextBytes(keys);
        return new UnsafeBuffer(keys);
    }

    /** Waits until everything that was accepted is on the drive. */
    void sync(Level level) {
        SyncOutcome outcome = store.sync(store.acceptedPosition(), level, SYNC_MILLIS);
        if (outcome != SyncOutcome.REACHED) {
            throw new OrbitKvException(
                    ErrorCode.DRIVE, "the drive below " + folder + " did not take the benchmark's blocks: " + outcome);
        }
    }

    @Override
    public void close() {
        store.close();
        delete(folder);
    }

    /** Removes a folder with all that is in it. */
    static void delete(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            List<Path> deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
            for (Path file : deepestFirst) {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
