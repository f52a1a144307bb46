package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.orbitkv.index.Family;
import io.orbitkv.index.KeyChain;
import io.orbitkv.nativeio.ErrorCode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Goal: what one process saves the others restore, byte for byte, whatever language they are in. Method: a manager, two
 * Python processes and this one, all real.
 */
class SharedByProcessesTest {
    private static final Path ROOT = Path.of(System.getProperty("orbitkv.root"));
    private static final int BLOCK_BYTES = 65_536;
    private static final int BLOCK_TOKENS = 16;
    private static final int BLOCKS = 12;

    @TempDir
    Path folder;

    @Test
    void javaAndPythonRestoreWhatEitherSaved() throws Exception {
        String socket = folder.resolve("m.sock").toString();
        Process manager = start(socket);
        try (JavaClient client = new JavaClient(socket, "java")) {
            int family = client.open(family());
            byte[] ours = keys(1);
            byte[] theirs = keys(2);
            assertEquals(BLOCKS, client.save(family, ours, payload(ours), BLOCK_BYTES));
            assertEquals(BLOCKS + "", python("RESTORE", socket, "one", "1"));
            assertEquals(BLOCKS + "", python("SAVE", socket, "two", "2"));
            assertArrayEquals(payload(theirs), client.restore(family, theirs, BLOCK_BYTES));
            assertArrayEquals(payload(ours), client.restore(family, ours, BLOCK_BYTES));
            assertEquals(BLOCKS + "", python("RESTORE", socket, "one", "2"));

            manager.destroyForcibly().waitFor();
        }
        manager = start(socket);
        try (JavaClient client = new JavaClient(socket, "java")) {
            int family = client.open(family());
            for (byte[] keys : List.of(keys(1), keys(2))) { // written before the kill: found again
                byte[] found = new byte[0];
                long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
                while (found.length < BLOCKS * BLOCK_BYTES && System.nanoTime() - deadline < 0) {
                    found = client.restore(family, keys, BLOCK_BYTES);
                }
                assertArrayEquals(payload(keys), found);
            }
            JavaClient.Refused refused = Assertions.assertThrows(
                    JavaClient.Refused.class, () -> client.done(1, 0), "its lease has ended: all shards were done");
            assertEquals(ErrorCode.LEASE_ENDED.number(), refused.code);
        } finally {
            manager.destroyForcibly().waitFor();
        }
    }

    private Process start(String socket) throws IOException {
        return JavaChild.start(
                "serving ", ManagerChild.class, socket, folder.resolve("data").toString());
    }

    /** What Python's own tests do in another process, with the same keys and bytes. */
    private static String python(String what, String socket, String instance, String prompt) throws Exception {
        String code = "import sys; sys.argv[0:0] = []\n"
                + "from tests.integration import test_manager\n"
                + "exec(test_manager." + what + ")\n";
        ProcessBuilder builder = new ProcessBuilder("python3", "-c", code, socket, instance, prompt, BLOCKS + "")
                .directory(ROOT.resolve("python").toFile())
                .redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        Process child = builder.start();
        String said = JavaChild.line(child);
        assertEquals(0, child.waitFor());
        return said;
    }

    private static Family family() {
        return Family.builder()
                .modelId("test-model")
                .weightsDigest(filled(32, 'w'))
                .tokenizerDigest(filled(32, 't'))
                .kvDtype("bf16")
                .layout("test-layout".getBytes(StandardCharsets.UTF_8))
                .blockBytes(BLOCK_BYTES)
                .blockTokens(BLOCK_TOKENS)
                .engine("test")
                .hash("orbitkv-sha256", "")
                .build();
    }

    private static byte[] filled(int bytes, char with) {
        byte[] filled = new byte[bytes];
        Arrays.fill(filled, (byte) with);
        return filled;
    }

    private static byte[] keys(int prompt) {
        int[] tokens = new int[BLOCKS * BLOCK_TOKENS];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = prompt * 1_000_003 + i;
        }
        byte[] keys = new byte[BLOCKS * Wire.KEY_BYTES];
        new KeyChain(BLOCK_TOKENS).keys(null, 0, tokens, 0, BLOCKS, new UnsafeBuffer(keys), 0);
        return keys;
    }

    private static byte[] payload(byte[] keys) {
        byte[] bytes = new byte[keys.length / Wire.KEY_BYTES * BLOCK_BYTES];
        for (int at = 0; at < bytes.length; at++) {
            int inKey = at % Wire.KEY_BYTES;
            bytes[at] = inKey == Wire.KEY_BYTES - 1 ? 0 : keys[at / BLOCK_BYTES * Wire.KEY_BYTES + inKey];
        }
        return bytes;
    }
}
