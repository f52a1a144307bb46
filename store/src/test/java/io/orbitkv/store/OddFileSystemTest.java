package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.store.KvStoreTest.Prompts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Goal: a file system that is no drive's serves too, whatever it refuses. Method: a store in a tmpfs, closed and opened again. */
class OddFileSystemTest {
    private static final int PROMPTS = 20;
    private static final int BLOCKS = 4;

    /** vLLM PR 44016, dynamo PR 4508: O_DIRECT answers EINVAL there on many kernels. */
    @Test
    void reported_dynamo_4508_and_vllm_44016_aTmpfsServes() throws IOException {
        Path shm = Path.of("/dev/shm");
        assumeTrue(Files.isWritable(shm), "no tmpfs here");
        Path folder = Files.createTempDirectory(shm, "orbitkv-tmpfs-");
        try {
            StoreOptions options = WholeStore.optionsIn(folder.resolve("store"))
                    .poolBytes(2 << 20)
                    .capBytes(16 << 20)
                    .segmentBytes(128 << 10);
            try (KvStore store = KvStore.open(options);
                    Prompts prompts = new Prompts(store, BLOCKS)) {
                for (int i = 0; i < PROMPTS; i++) {
                    prompts.save(i);
                }
                assertEquals(SyncOutcome.REACHED, store.sync(store.acceptedPosition(), Level.DURABLE, 60_000));
            }
            try (KvStore store = WholeStore.open(options);
                    Prompts prompts = new Prompts(store, BLOCKS)) {
                assertEquals(OpeningKind.CLEAN, store.openReport().kind());
                for (int i = 0; i < PROMPTS; i++) {
                    assertEquals(BLOCKS, prompts.restore(i));
                }
            }
        } finally {
            try (Stream<Path> all = Files.walk(folder)) {
                all.sorted(Comparator.reverseOrder())
                        .forEach(path -> path.toFile().delete());
            }
        }
    }
}
