package io.orbitkv.nativeio;

import java.nio.file.Path;
import java.util.Random;

/**
 * Question: what do both rings make of a drive? Run by hand: {@code RingSpeed <folder>}; no test.
 *
 * <p>Floor to compare with: fio with the same file, depth, page kind and size. The file is written once before, since
 * blocks that are only preallocated are read without touching the drive.
 */
final class RingSpeed {
    private static final long FILE_BYTES = 1L << 30;
    private static final int WRITE_BYTES = 2 << 20;
    private static final int WRITE_DEPTH = 8;
    private static final int READ_BYTES = 64 << 10;
    private static final int READ_DEPTH = 32;
    private static final long SAMPLE_NANOS = 1_500_000_000L;
    private static final int ROUNDS = 3;

    private RingSpeed() {}

    public static void main(String[] args) {
        try (HostFolder folder = HostFolder.open(Path.of(args[0]));
                StorageFile file = folder.create("speed", FILE_BYTES);
                MemoryRegion memory = MemoryRegion.anonymous(64 << 20, PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL)) {
            memory.fill(0, memory.bytes(), (byte) 7);
            for (long at = 0; at < FILE_BYTES; at += memory.bytes()) {
                file.write(at, memory, 0, (int) memory.bytes());
            }
            for (int round = 0; round < ROUNDS; round++) {
                for (String kind : new String[] {"uring", "threads"}) {
                    measure(folder, file, memory, kind, false, WRITE_BYTES, WRITE_DEPTH);
                    measure(folder, file, memory, kind, true, READ_BYTES, READ_DEPTH);
                    measure(folder, file, memory, kind, true, MemoryRegion.PAGE_BYTES, 64);
                }
            }
            folder.unlink("speed");
        }
    }

    private static void measure(
            HostFolder folder, StorageFile file, MemoryRegion memory, String kind, boolean read, int bytes, int depth) {
        Random random = new Random(1);
        System.setProperty(Rings.PROPERTY, kind);
        try (IoRing ring = folder.newRing(depth)) {
            ring.register(memory);
            long[] done = {0};
            CompletionHandler handler = (token, result) -> done[0] += result;
            long cpu = Machine.processorNanos();
            long start = System.nanoTime();
            long places = FILE_BYTES / bytes;
            long next = 0;
            while (System.nanoTime() - start < SAMPLE_NANOS) {
                long slot = next % (memory.bytes() / bytes);
                long at = (read ? (long) (random.nextDouble() * places) : next % places) * bytes;
                boolean taken = read
                        ? ring.read(file, at, memory, slot * bytes, bytes, 0)
                        : ring.write(file, at, memory, slot * bytes, bytes, 0);
                if (taken) {
                    next++;
                } else {
                    ring.await(1_000_000_000);
                    ring.poll(handler, depth);
                }
            }
            while (ring.inFlight() > 0) {
                ring.await(1_000_000_000);
                ring.poll(handler, depth);
            }
            double seconds = (System.nanoTime() - start) / 1e9;
            System.out.printf(
                    "%-8s %-5s %7d bytes depth %2d: %6.0f MiB/s, %5.1f us CPU a transfer%n",
                    kind,
                    read ? "read" : "write",
                    bytes,
                    depth,
                    done[0] / seconds / (1 << 20),
                    (Machine.processorNanos() - cpu) / 1e3 / (done[0] / (double) bytes));
        }
    }
}
