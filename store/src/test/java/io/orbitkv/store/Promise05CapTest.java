package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.TestFolders;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Goal: what the store's files and foreign ones take together is never above the cap.
 * Method: a real process ({@link CapChild}) saves, and is killed; this one samples st_blocks of the whole folder every 10 ms
 * from outside, and puts foreign files in. The whole size: {@code -Dorbitkv.capBytes=1073741824 -Dorbitkv.foreignBytes=314572800},
 * as docs/qualification.md says.
 */
@Tag("long")
class Promise05CapTest {
    private static final long MIB = 1 << 20;
    private static final long CAP = Long.getLong("orbitkv.capBytes", 64 * MIB);
    private static final long FOREIGN = Long.getLong("orbitkv.foreignBytes", 20 * MIB);
    private static final int TIMES_SAVED = 10;

    /** By when the folder is within the cap again. */
    private static final long WITHIN_NANOS = 10_000_000_000L;

    /** What the file system needs to find scattered pages: one page a file, and some for the folder. */
    private static final long METADATA_BYTES = 128 << 10;

    private final TestFolders folders = new TestFolders();
    private final Path folder = folders.make("cap");
    private final CapWatch watch = new CapWatch(folder);
    private Child child;

    /** A child and the first line that it said. */
    private record Child(Process process, BufferedWriter out, String[] opened) {
        String[] ask(String line) throws IOException {
            out.write(line + "\n");
            out.flush();
            String first = line.split(" ")[0];
            return answer(process, first.equals("save") ? "saved" : first.equals("close") ? "closed" : first);
        }

        /** Logs may come before an answer. */
        static String[] answer(Process process, String word) throws IOException {
            for (String line = process.inputReader().readLine();
                    line != null;
                    line = process.inputReader().readLine()) {
                if (line.startsWith(word + " ") || line.equals(word)) {
                    return line.split(" ");
                }
            }
            throw new AssertionError("the child ended before it answered " + word);
        }
    }

    @AfterEach
    void end() throws Exception {
        if (child != null) {
            child.process.destroyForcibly().waitFor();
        }
        watch.close();
        folders.close();
    }

    private void open(long capBytes) throws IOException {
        Process process = ChildJvm.start(CapChild.class, folder.toString(), "" + capBytes);
        String[] opened = Child.answer(process, "open");
        child = new Child(process, process.outputWriter(), opened);
        requireExact();
    }

    /** The four kinds of pages are those that were allocated, and those are what the file system says. */
    private void requireExact() {
        long preallocated = Long.parseLong(child.opened[1]);
        assertEquals("true", child.opened[2], "accounting");
        long segments = watch.allocated("segments");
        assertTrue(
                segments >= preallocated && segments <= preallocated + METADATA_BYTES,
                segments + " bytes of segments, " + preallocated + " accounted for");
    }

    private void kill() throws InterruptedException {
        child.process.destroyForcibly().waitFor();
    }

    private void stop() throws Exception {
        child.ask("close");
        assertTrue(child.process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(0, child.process.exitValue());
    }

    private static void put(Path file, long bytes) throws IOException {
        byte[] piece = new byte[1 << 20];
        try (OutputStream out = Files.newOutputStream(file)) {
            for (long done = 0; done < bytes; done += piece.length) {
                out.write(piece);
            }
        }
        try (var channel = java.nio.channels.FileChannel.open(file, java.nio.file.StandardOpenOption.WRITE)) {
            channel.force(true); // blocks that are not yet decided on don't count in st_blocks
        }
    }

    private void requireNeverAbove(String when) {
        long most = watch.most();
        System.out.println("cap " + CAP + ", most bytes " + when + ": " + most);
        assertTrue(most <= CAP, most + " bytes " + when + ", the cap is " + CAP);
    }

    private long nanosUntilWithin() {
        long start = System.nanoTime();
        while (watch.allocated("") > CAP) {
            assertTrue(System.nanoTime() - start < WITHIN_NANOS, () -> watch.allocated("") + " bytes after 10 s");
            LockSupport.parkNanos(1_000_000);
        }
        return System.nanoTime() - start;
    }

    /** What stats say may be of some seconds ago. */
    private void awaitForeign() throws Exception {
        long start = System.nanoTime();
        while (Long.parseLong(child.ask("stats")[2]) / 4096 * 4096 != FOREIGN) {
            assertTrue(System.nanoTime() - start < WITHIN_NANOS, "stats don't know of the foreign file");
            LockSupport.parkNanos(50_000_000);
        }
    }

    @Test
    void reported_LMCache_4725_tenTimesTheCapIsSavedAndForeignFilesCount() throws Exception {
        open(CAP);
        assertTrue(Long.parseLong(child.ask("save " + TIMES_SAVED * CAP)[1]) > 0, "nothing was evicted");
        requireNeverAbove("while " + TIMES_SAVED + " times the cap was saved");
        long before = watch.allocated("");
        assertTrue(before > CAP * 9 / 10, "the store uses its cap: " + before);

        Path foreign = folder.resolve("foreign.bin");
        put(foreign, FOREIGN);
        System.out.println("within the cap again after " + nanosUntilWithin() / 1_000_000 + " ms");
        watch.most();
        child.ask("save " + CAP);
        requireNeverAbove("beside a foreign file of " + FOREIGN);
        awaitForeign();
        kill();
        open(0);
        requireNeverAbove("around a kill");
        Files.delete(foreign);
        long start = System.nanoTime();
        while (watch.allocated("") < before * 98 / 100) { // scattered pages cost the file system more to find
            assertTrue(System.nanoTime() - start < 6 * WITHIN_NANOS, "it does not grow back into its cap");
            LockSupport.parkNanos(10_000_000);
        }
        child.ask("save " + CAP);
        stop();
        open(0);
        requireNeverAbove("after the foreign file had gone");
        stop();
    }

    @Test
    void reported_LMCache_1454_whatIsThereBeforeTheStartCounts() throws Exception {
        open(CAP);
        child.ask("save " + CAP);
        stop();
        requireNeverAbove("in the first life");
        put(folder.resolve("segments").resolve("foreign.bin"), FOREIGN);
        open(CAP);
        assertTrue(watch.allocated("") <= CAP, () -> watch.allocated("") + " bytes when opened");
        watch.most();
        child.ask("save " + CAP);
        requireNeverAbove("beside what was there before");
        stop();
    }

    @Test
    void reported_vllm_54779_aRestartedStoreGivesUpOldBlocks() throws Exception {
        for (int life = 0; life < 2; life++) {
            open(CAP);
            assertTrue(Long.parseLong(child.ask("save " + 2 * CAP)[1]) > 0, "nothing was evicted");
            stop();
        }
        requireNeverAbove("in two lives");
    }

    @Test
    void reported_LMCache_4564_atNinetyFivePercentAKillAndTheNextSaveEvicts() throws Exception {
        open(CAP);
        child.ask("save " + CAP * 95 / 100);
        kill();
        open(CAP);
        long free = Long.parseLong(child.opened[4]);
        long used = Long.parseLong(child.opened[3]);
        assertTrue(used * 100 >= (used + free) * 90, used + " segments used, " + free + " free");
        assertTrue(Long.parseLong(child.ask("save " + CAP / 8)[1]) > 0, "nothing was evicted");
        requireNeverAbove("before and after the kill");
        kill();
        open(CAP);
        requireNeverAbove("in the end");
        stop();
    }
}
