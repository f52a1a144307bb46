package io.orbitkv.bench;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.MemoryRegion;
import java.util.concurrent.locks.LockSupport;

/**
 * What the store does with the bytes of a transfer, without the transfer: a core that checks blocks, or copies and checks
 * them, at a given pace, beside somebody who moves equally many. It shows what a machine has left for that.
 *
 * <p>Started and stopped by one thread; the work is done by another.
 */
final class ByteWork {
    /** What is done with each block. */
    enum Kind {
        /** Its CRC32C, as a restore needs it. */
        CHECK("CRC32C"),
        /** A copy and its CRC32C, as a save needs them. */
        COPY_AND_CHECK("copy + CRC32C");

        private final String label;

        Kind(String label) {
            this.label = label;
        }

        String label() {
            return label;
        }
    }

    /**
     * How it went.
     *
     * @param blockNanos of a block: the pace or, where a core can't keep up with it, what it needs
     * @param busyNanos of a block, the waiting left out
     */
    record Done(double blockNanos, double busyNanos) {}

    /** Behind the pace by so many blocks, the worker stops catching up: from then on it shows what it can do. */
    private static final int BEHIND_BLOCKS_MAX = 32;

    private final Kind kind;
    private final MemoryRegion source;
    private final MemoryRegion target;
    private final int blockBytes;
    private final double paceNanos;
    private final Thread worker = new Thread(this::work, "byte-work");
    private volatile boolean stopped;
    private long blocks;
    private long nanos;
    private long busyNanos;
    private volatile int checksum;

    private ByteWork(Kind kind, MemoryRegion source, MemoryRegion target, int blockBytes, double paceNanos) {
        this.kind = kind;
        this.source = source;
        this.target = target;
        this.blockBytes = blockBytes;
        this.paceNanos = paceNanos;
    }

    /**
     * Starts.
     *
     * @param source blocks are read from all of it in turn, so that they are cold
     * @param target copies land all over it
     * @param paceNanos a block is due each so many nanoseconds
     */
    static ByteWork start(Kind kind, MemoryRegion source, MemoryRegion target, int blockBytes, double paceNanos) {
        ByteWork work = new ByteWork(kind, source, target, blockBytes, paceNanos);
        work.worker.setDaemon(true);
        work.worker.start();
        return work;
    }

    private void work() {
        BlockChecksum sum = new BlockChecksum();
        int all = 0;
        long began = System.nanoTime();
        double due = began;
        while (!stopped) {
            long now = System.nanoTime();
            if (now < due) {
                LockSupport.parkNanos((long) due - now);
                continue;
            }
            due = Math.max(due, now - BEHIND_BLOCKS_MAX * paceNanos) + paceNanos;
            long from = blocks % (source.bytes() / blockBytes) * blockBytes;
            if (kind == Kind.COPY_AND_CHECK) {
                long to = blocks % (target.bytes() / blockBytes) * blockBytes;
                target.copyFrom(to, source, from, blockBytes);
                all = 31 * all + sum.reset().update(target, to, blockBytes).value();
            } else {
                all = 31 * all + sum.reset().update(source, from, blockBytes).value();
            }
            blocks++;
            busyNanos += System.nanoTime() - now;
        }
        checksum = all; // nobody may leave the work out
        nanos = System.nanoTime() - began;
    }

    /** Stops. */
    Done stop() {
        stopped = true;
        try {
            worker.join();
        } catch (InterruptedException e) {
            throw Fio.interrupted(e);
        }
        return blocks == 0 ? new Done(paceNanos, 0) : new Done((double) nanos / blocks, (double) busyNanos / blocks);
    }

    /** Of all blocks together, once it has stopped. */
    int checksum() {
        return checksum;
    }
}
