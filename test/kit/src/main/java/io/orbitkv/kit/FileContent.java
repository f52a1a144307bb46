package io.orbitkv.kit;

import io.orbitkv.nativeio.MemoryRegion;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.agrona.collections.Int2ObjectHashMap;
import org.agrona.collections.IntArrayList;

/**
 * The bytes of one file on a simulated drive, whatever it is called: per page what is durable and, oldest first, what
 * was written since and not flushed. Pages that were never written read as zeros and take no memory.
 *
 * <p>A page's newest bytes are those of the write that was completed last. Guarded by the drive.
 */
final class FileContent {
    /** What a drive writes whole: a page that loses power midway may be torn between sectors, never within one. */
    static final int SECTOR_BYTES = 512;

    private static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;
    private static final byte[] ZEROS = new byte[PAGE_BYTES];

    /** A page that was written at least once; null durable bytes are zeros. */
    private static final class Page {
        private byte[] durable = ZEROS;
        private final ArrayList<byte[]> unflushed = new ArrayList<>(2);
        private final ArrayList<Long> sequences = new ArrayList<>(2);

        byte[] newest() {
            return unflushed.isEmpty() ? durable : unflushed.get(unflushed.size() - 1);
        }
    }

    /** A write that was submitted and has not completed: the drive may have written any of its sectors. */
    static final class PendingWrite {
        final SimulatedFolder owner;
        final int firstPage;
        final byte[][] pages;

        private PendingWrite(SimulatedFolder owner, int firstPage, byte[][] pages) {
            this.owner = owner;
            this.firstPage = firstPage;
            this.pages = pages;
        }
    }

    final int number;
    long bytes;
    int handles;

    private final Int2ObjectHashMap<Page> pages = new Int2ObjectHashMap<>();
    private final IntArrayList dirty = new IntArrayList();
    private final List<PendingWrite> inFlight = new ArrayList<>();
    private final ArrayDeque<byte[]> spare;
    private boolean neverFlushesAgain;
    private long writes;

    FileContent(int number, long bytes, ArrayDeque<byte[]> spare) {
        this.number = number;
        this.bytes = bytes;
        this.spare = spare;
    }

    /** Takes a copy of what is to be written; from now on readers may or may not see it, sector by sector. */
    PendingWrite begin(SimulatedFolder owner, long fileOffset, MemoryRegion region, long offset, int length) {
        byte[][] copies = new byte[length / PAGE_BYTES][];
        for (int i = 0; i < copies.length; i++) {
            copies[i] = takePage();
            region.copyTo(offset + (long) i * PAGE_BYTES, copies[i], 0, PAGE_BYTES);
        }
        PendingWrite write = new PendingWrite(owner, (int) (fileOffset / PAGE_BYTES), copies);
        inFlight.add(write);
        return write;
    }

    /**
     * Reads the source a second time: a real drive does so at any moment until completion, so where the owner changed
     * the memory of a write in flight, chance decides by sector which bytes were taken.
     */
    void takeAgain(PendingWrite write, MemoryRegion region, long offset, byte[] scratch, Gen gen) {
        for (int i = 0; i < write.pages.length; i++) {
            region.copyTo(offset + (long) i * PAGE_BYTES, scratch, 0, PAGE_BYTES);
            if (!Arrays.equals(scratch, write.pages[i])) {
                mixSectors(scratch, write.pages[i], gen);
            }
        }
    }

    /** The write is done: its bytes are what readers see. */
    void complete(PendingWrite write) {
        inFlight.remove(write);
        writes++;
        for (int i = 0; i < write.pages.length; i++) {
            append(write.firstPage + i, write.pages[i]);
        }
    }

    /** The write has failed, or its process has died: nothing, all, or some sectors of it reached the drive. */
    void abandon(PendingWrite write, Gen gen) {
        inFlight.remove(write);
        int outcome = gen.below(3);
        if (outcome == 0) {
            return;
        }
        writes++;
        for (int i = 0; i < write.pages.length; i++) {
            int pageNumber = write.firstPage + i;
            if (outcome == 2) {
                byte[] torn = takePage();
                System.arraycopy(newest(pageNumber), 0, torn, 0, PAGE_BYTES);
                mixSectors(write.pages[i], torn, gen);
                append(pageNumber, torn);
            } else {
                append(pageNumber, write.pages[i]);
            }
        }
    }

    /** Reads what is there, with writes in flight visible or not by sector. */
    void read(long fileOffset, MemoryRegion region, long offset, int length, byte[] scratch, Gen gen) {
        int firstPage = (int) (fileOffset / PAGE_BYTES);
        for (int i = 0; i < length / PAGE_BYTES; i++) {
            byte[] page = newest(firstPage + i);
            for (int w = 0; w < inFlight.size(); w++) {
                PendingWrite write = inFlight.get(w);
                int within = firstPage + i - write.firstPage;
                if (within >= 0 && within < write.pages.length) {
                    if (page != scratch) {
                        System.arraycopy(page, 0, scratch, 0, PAGE_BYTES);
                        page = scratch;
                    }
                    mixSectors(write.pages[within], scratch, gen);
                }
            }
            region.copyFrom(offset + (long) i * PAGE_BYTES, page, 0, PAGE_BYTES);
        }
    }

    /** How many writes have completed: what a flush that is submitted now covers. */
    long writes() {
        return writes;
    }

    /** What was completed up to a number of writes is durable. */
    void flush(long upToWrites) {
        if (neverFlushesAgain) {
            return;
        }
        int left = 0;
        for (int i = 0; i < dirty.size(); i++) {
            int pageNumber = dirty.getInt(i);
            Page page = pages.get(pageNumber);
            while (!page.unflushed.isEmpty() && page.sequences.get(0) <= upToWrites) {
                giveBack(page.durable);
                page.durable = page.unflushed.remove(0);
                page.sequences.remove(0);
            }
            if (!page.unflushed.isEmpty()) {
                dirty.setInt(left++, pageNumber);
            }
        }
        while (dirty.size() > left) {
            dirty.popInt();
        }
    }

    /** A flush has failed: the kernel has dropped the pages, and later flushes know nothing of them. */
    void failFlush() {
        neverFlushesAgain = true;
    }

    /** Settles the writes that a dead process had in flight; what it completed stays. */
    void kill(SimulatedFolder owner, Gen gen) {
        for (int i = inFlight.size() - 1; i >= 0; i--) {
            if (inFlight.get(i).owner == owner) {
                abandon(inFlight.get(i), gen);
            }
        }
        neverFlushesAgain = false;
    }

    /** Decides for every page that was not flushed what of it survives. */
    void losePower(PowerLoss loss, Gen gen) {
        while (!inFlight.isEmpty()) {
            abandon(inFlight.get(inFlight.size() - 1), gen);
        }
        for (int i = 0; i < dirty.size(); i++) {
            Page page = pages.get(dirty.getInt(i));
            page.durable = survivor(page, loss, gen);
            page.unflushed.clear();
            page.sequences.clear();
        }
        dirty.clear();
        neverFlushesAgain = false;
    }

    private byte[] survivor(Page page, PowerLoss loss, Gen gen) {
        return switch (loss.ofPage(gen)) {
            case LOST -> page.durable;
            case APPLIED -> page.unflushed.get(gen.below(page.unflushed.size()));
            case LAST -> page.newest();
            case TORN -> {
                byte[] torn = takePage();
                for (int sector = 0; sector < PAGE_BYTES; sector += SECTOR_BYTES) {
                    int pick = gen.below(page.unflushed.size() + 1);
                    byte[] from = pick == 0 ? page.durable : page.unflushed.get(pick - 1);
                    System.arraycopy(from, sector, torn, sector, SECTOR_BYTES);
                }
                yield torn;
            }
        };
    }

    private void append(int pageNumber, byte[] content) {
        Page page = pages.get(pageNumber);
        if (page == null) {
            page = new Page();
            pages.put(pageNumber, page);
        }
        if (page.unflushed.isEmpty()) {
            dirty.addInt(pageNumber);
        }
        page.unflushed.add(content);
        page.sequences.add(writes);
    }

    /** Pages that take no room any more, by number; the others do, whether they were written or not. */
    private final org.agrona.collections.IntHashSet holes = new org.agrona.collections.IntHashSet();

    /** Makes the file longer, without pages for what is new. */
    void extend(long length) {
        for (long page = bytes / PAGE_BYTES; page < length / PAGE_BYTES; page++) {
            holes.add((int) page);
        }
        bytes = Math.max(bytes, length);
    }

    /** Bytes that the file takes. */
    long allocatedBytes() {
        return bytes - (long) holes.size() * PAGE_BYTES;
    }

    void allocate(long fileOffset, long length) {
        for (long page = fileOffset / PAGE_BYTES; page < (fileOffset + length) / PAGE_BYTES; page++) {
            holes.remove((int) page);
        }
    }

    /** Pages become holes and read as zeros; until they are flushed, a power loss may bring back what they held. */
    void punch(long fileOffset, long length) {
        writes++;
        for (long page = fileOffset / PAGE_BYTES; page < (fileOffset + length) / PAGE_BYTES; page++) {
            holes.add((int) page);
            if (pages.containsKey((int) page)) {
                append((int) page, ZEROS);
            }
        }
    }

    private byte[] newest(int pageNumber) {
        Page page = pages.get(pageNumber);
        return page == null ? ZEROS : page.newest();
    }

    private static void mixSectors(byte[] from, byte[] into, Gen gen) {
        long coins = gen.nextLong();
        for (int sector = 0; sector < PAGE_BYTES; sector += SECTOR_BYTES, coins >>>= 1) {
            if ((coins & 1) != 0) {
                System.arraycopy(from, sector, into, sector, SECTOR_BYTES);
            }
        }
    }

    private byte[] takePage() {
        byte[] page = spare.poll();
        return page != null ? page : new byte[PAGE_BYTES];
    }

    private void giveBack(byte[] page) {
        if (page != ZEROS && spare.size() < SimulatedDrive.SPARE_PAGES_MAX) {
            spare.add(page);
        }
    }
}
