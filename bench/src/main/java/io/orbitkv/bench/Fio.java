package io.orbitkv.bench;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Runs fio on one file, through io_uring with direct I/O, registered files and, where memory may be locked, registered
 * buffers: what a store does, without the store.
 */
final class Fio {
    /** What a run does with the file. */
    enum Work {
        WRITE("write"),
        READ("read"),
        RANDOM_READ("randread");

        private final String label;

        Work(String label) {
            this.label = label;
        }

        /** As fio calls it. */
        String label() {
            return label;
        }
    }

    /**
     * How a run went.
     *
     * @param bytes transferred
     * @param nanos it took, start-up left out
     * @param cpuNanos user and system time of the thread that did it
     * @param hugeBytes most bytes on transparent huge pages that were seen in the process; 0 where a run ended too soon
     * @param bufferBytes bytes of the buffers
     */
    record Run(long bytes, double nanos, double cpuNanos, long hugeBytes, long bufferBytes) {}

    private static final String REMEDY = "install it (Debian: apt-get install fio) and see that it is on the PATH";

    /** Names another fio than the one on the PATH. */
    private static final String PROGRAM_PROPERTY = "orbitkv.fio";

    private static final long LOOK_MILLIS = 10;
    private static final long RUN_SECONDS_MAX = 600;

    /** glibc asks for huge pages behind large allocations; fio's own option needs a reserved pool of them. */
    private static final String TUNABLES = "GLIBC_TUNABLES";

    private static final String HUGE = "glibc.malloc.hugetlb=1";

    /** Buffers lie this far apart, so that each can lie on a huge page. */
    private static final int BUFFER_STEP_BYTES = 2 << 20;

    private final String version;
    private final Path file;
    private final Path report;
    private final long fileBytes;
    private final long roundBytes;
    private boolean fixedBuffers = true;

    /** Where the next writing run begins. */
    private long writeAt;

    private Fio(String version, Path folder, long fileBytes, long roundBytes) {
        this.version = version;
        this.file = folder.resolve("fio.data");
        this.report = folder.resolve("fio.json");
        this.fileBytes = fileBytes;
        this.roundBytes = roundBytes;
    }

    /**
     * Finds fio.
     *
     * @param folder its file and its report lie there
     * @param fileBytes size of the file
     * @param roundBytes what each run but the first transfers
     * @throws OrbitKvException {@link ErrorCode#NOT_AVAILABLE} where it is missing
     */
    static Fio find(Path folder, long fileBytes, long roundBytes) {
        String version;
        try {
            Process process = new ProcessBuilder(program(), "--version")
                    .redirectErrorStream(true)
                    .start();
            version = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim();
            if (process.waitFor() != 0) {
                throw new OrbitKvException(ErrorCode.NOT_AVAILABLE, "fio does not run: " + version + "; " + REMEDY);
            }
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.NOT_AVAILABLE, "fio, which this benchmark compares with, is missing; " + REMEDY, e);
        } catch (InterruptedException e) {
            throw interrupted(e);
        }
        return new Fio(version, folder, fileBytes, roundBytes);
    }

    private static String program() {
        return System.getProperty(PROGRAM_PROPERTY, "fio");
    }

    String version() {
        return version;
    }

    boolean hasFixedBuffers() {
        return fixedBuffers;
    }

    /** Makes the file, and finds out whether fio may register its buffers here. */
    Run makeFile(int blockBytes, int depth, boolean hugePages) {
        try {
            return run(Work.WRITE, 0, fileBytes, blockBytes, depth, hugePages);
        } catch (OrbitKvException e) {
            fixedBuffers = false; // the limit on locked memory is too low, most likely; if not, it fails again
            return run(Work.WRITE, 0, fileBytes, blockBytes, depth, hugePages);
        }
    }

    /**
     * Transfers a round's bytes: reads those at the file's start, in order or at random; writes on where the run before ended, as
     * a log does, for a drive with a cache takes the same bytes again faster than others.
     */
    Run run(Work work, int blockBytes, int depth, boolean hugePages) {
        if (work != Work.WRITE) {
            return run(work, 0, roundBytes, blockBytes, depth, hugePages);
        }
        long at = writeAt + roundBytes > fileBytes ? 0 : writeAt;
        writeAt = at + roundBytes;
        return run(work, at, roundBytes, blockBytes, depth, hugePages);
    }

    private Run run(Work work, long at, long bytes, int blockBytes, int depth, boolean hugePages) {
        List<String> command = new ArrayList<>(List.of(
                program(),
                "--name=orbitkv",
                "--filename=" + file,
                "--offset=" + at,
                "--size=" + bytes,
                "--rw=" + work.label,
                // The second size is of writes, which a reading run doesn't do: it spaces the buffers.
                "--bs=" + blockBytes + (work == Work.WRITE ? "" : "," + Math.max(blockBytes, BUFFER_STEP_BYTES)),
                "--iodepth=" + depth,
                "--ioengine=io_uring",
                "--direct=1",
                "--registerfiles=1",
                "--fixedbufs=" + (fixedBuffers ? 1 : 0),
                "--hipri=0",
                "--thread",
                "--fallocate=none",
                "--scramble_buffers=0", // it writes the same bytes again: nothing but I/O counts
                "--iomem_align=2m",
                "--eta=never",
                "--output-format=json",
                "--output=" + report));
        if (work == Work.RANDOM_READ) {
            command.add("--blockalign=" + MemoryRegion.PAGE_BYTES); // as blocks of the store lie: behind a header page
        }
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().remove(TUNABLES);
        if (hugePages) {
            builder.environment().put(TUNABLES, HUGE);
        }
        long bufferBytes = (long) depth * Math.max(blockBytes, BUFFER_STEP_BYTES);
        try {
            Process process = builder.start();
            long hugeBytes = watch(process, bufferBytes);
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim();
            if (process.exitValue() != 0) {
                throw new OrbitKvException(
                        ErrorCode.CHILD_PROCESS,
                        "fio ended with " + process.exitValue() + ": " + said + "; it was started as "
                                + String.join(" ", command));
            }
            return parse(Files.readString(report), work, hugeBytes, bufferBytes);
        } catch (IOException e) {
            throw new OrbitKvException(ErrorCode.CHILD_PROCESS, "fio could not be run: " + e + "; " + REMEDY, e);
        } catch (InterruptedException e) {
            throw interrupted(e);
        }
    }

    /** Waits for the end, and looks at the process's pages until its buffers are seen on huge ones. */
    private static long watch(Process process, long bufferBytes) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(RUN_SECONDS_MAX);
        long seen = 0;
        while (seen < bufferBytes && !process.waitFor(LOOK_MILLIS, TimeUnit.MILLISECONDS)) {
            seen = Math.max(seen, Pages.hugeBytesOfProcess(Long.toString(process.pid())));
            if (System.nanoTime() - deadline > 0) {
                break;
            }
        }
        if (!process.waitFor(Math.max(1, deadline - System.nanoTime()), TimeUnit.NANOSECONDS)) {
            process.destroyForcibly().waitFor();
            throw new OrbitKvException(
                    ErrorCode.CHILD_PROCESS, "fio was not done after " + RUN_SECONDS_MAX + " s; take fewer --bytes");
        }
        return seen;
    }

    static OrbitKvException interrupted(InterruptedException e) {
        Thread.currentThread().interrupt();
        return new OrbitKvException(ErrorCode.CHILD_PROCESS, "interrupted while fio ran; run it again", e);
    }

    /** Takes the few numbers that are needed out of fio's report. */
    static Run parse(String json, Work work, long hugeBytes, long bufferBytes) {
        int section = json.indexOf(work == Work.WRITE ? "\"write\" :" : "\"read\" :");
        double bytes = number(json, Math.max(0, section), "io_bytes");
        double millis = number(json, Math.max(0, section), "runtime");
        double busy = number(json, 0, "usr_cpu") + number(json, 0, "sys_cpu");
        if (section < 0 || bytes <= 0 || millis <= 0) {
            throw new OrbitKvException(
                    ErrorCode.CHILD_PROCESS,
                    "fio reports " + bytes + " bytes in " + millis
                            + " ms; take more --bytes, or another fio (3.33 works)");
        }
        return new Run((long) bytes, millis * 1e6, busy / 100 * millis * 1e6, hugeBytes, bufferBytes);
    }

    private static double number(String json, int from, String key) {
        Matcher matcher = Pattern.compile("\"" + key + "\" : ([0-9.]+)").matcher(json);
        return matcher.find(from) ? Double.parseDouble(matcher.group(1)) : -1;
    }
}
