package io.orbitkv.kit;

import io.orbitkv.nativeio.MemoryRegion;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
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

    /** Where a write lands that never happens. */
    static final int NOWHERE = -1;

    private static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
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

    /** A harm, and the write that made the page whole again: 0 while there was none. */
    private static final class Wound {
        final Harm harm;
        long healedBy;

        Wound(Harm harm) {
            this.harm = harm;
        }
    }

    final int number;
    long bytes;
    int handles;

    private final Int2ObjectHashMap<Page> pages = new Int2ObjectHashMap<>();
    private final IntArrayList dirty = new IntArrayList();
    private final List<PendingWrite> inFlight = new ArrayList<>();
    private final ArrayDeque<byte[]> spare;
    private final Faults faults;

    /** Pages in the order in which they were written first. */
    private final IntArrayList written = new IntArrayList();

    private final Int2ObjectHashMap<Wound> wounds = new Int2ObjectHashMap<>();

    /** Harms of a while, whether or not they have healed since; null while nobody wants to know. */
    private List<Harm> noted;

    /** Writes up to this number are lost to flushes: one that was to cover them has failed. */
    private long failedUpTo;

    private long writes;

    /** Writes up to this one were said to be durable though they are not. */
    private long liedUpTo;

    FileContent(int number, long bytes, ArrayDeque<byte[]> spare, Faults faults) {
        this.number = number;
        this.bytes = bytes;
        this.spare = spare;
        this.faults = faults;
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
            heal(write.firstPage + i);
        }
    }

    /** The write is acknowledged, and its bytes lie somewhere else, or nowhere. */
    void completeElsewhere(PendingWrite write, int elsewhere, Fault fault) {
        if (elsewhere == write.firstPage) {
            complete(write);
            return;
        }
        inFlight.remove(write);
        writes++;
        for (int i = 0; i < write.pages.length; i++) {
            byte[] page = write.pages[i];
            int intended = write.firstPage + i;
            wound(intended, fault, first(page), first(newest(intended)));
        }
        for (int i = 0; i < write.pages.length && elsewhere != NOWHERE; i++) {
            int victim = elsewhere + i;
            if (victim < write.firstPage || victim >= write.firstPage + write.pages.length) {
                spoil(victim, fault, first(newest(victim)), first(write.pages[i]));
            } else {
                wound(victim, fault, first(write.pages[victim - write.firstPage]), first(write.pages[i]));
            }
            append(victim, write.pages[i]);
        }
    }

    /** One bit of a page flips. */
    void rot(Gen choice) {
        if (written.isEmpty()) {
            return;
        }
        int pageNumber = written.getInt(choice.below(written.size()));
        byte[] page = newest(pageNumber);
        if (page == ZEROS) {
            return;
        }
        long was = first(page);
        int bit = choice.below(PAGE_BYTES * Byte.SIZE);
        page[bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
        spoil(pageNumber, Fault.ROT_AT_REST, was, first(page));
    }

    /** Notes that bytes of a range were delivered or kept wrong. */
    void harm(Fault fault, long fileOffset, int length) {
        int end = (int) ((fileOffset + length + PAGE_BYTES - 1) / PAGE_BYTES);
        for (int page = (int) (fileOffset / PAGE_BYTES); page < end; page++) {
            long is = first(newest(page));
            spoil(page, fault, is, is);
        }
    }

    /** Something is wrong with what lies in a page; where that was wrong before, what belongs there stays the same. */
    private void spoil(int page, Fault fault, long was, long first) {
        Wound before = wounds.get(page);
        wound(page, fault, before != null && before.healedBy == 0 ? before.harm.was() : was, first);
    }

    private void wound(int page, Fault fault, long was, long first) {
        Harm harm = new Harm(page, fault, was, first);
        wounds.put(page, new Wound(harm));
        if (noted != null) {
            noted.add(harm);
        }
    }

    private void heal(int page) {
        if (!wounds.isEmpty()) {
            Wound wound = wounds.get(page);
            if (wound != null && wound.healedBy == 0) {
                wound.healedBy = writes;
            }
        }
    }

    private static long first(byte[] page) {
        return (long) LONGS.get(page, 0);
    }

    /** From now on harms count that heal, too, beginning with those of now; or not any more. */
    void noteHarms(boolean notes) {
        if (!notes) {
            noted = null;
        } else if (noted == null) {
            noted = harms();
        }
    }

    /** Pages that are harmed now, or were while harms are noted. */
    List<Harm> harms() {
        if (noted != null) {
            return List.copyOf(noted);
        }
        List<Harm> harms = new ArrayList<>();
        for (Wound wound : wounds.values()) {
            if (wound.healedBy == 0) {
                harms.add(wound.harm);
            }
        }
        return harms;
    }

    /** The write has failed, or its process has died: nothing, all, or some sectors of it reached the drive. */
    void abandon(PendingWrite write, Gen gen) {
        inFlight.remove(write);
        int drawn = gen.below(3);
        int outcome = drawn == 2 && !faults.mayHappen(Fault.TORN_WRITE) ? 1 : drawn;
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
        int left = 0;
        for (int i = 0; i < dirty.size(); i++) {
            int pageNumber = dirty.getInt(i);
            Page page = pages.get(pageNumber);
            for (int covered = covered(page, upToWrites); covered > 0; covered--) {
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
        if (!wounds.isEmpty()) {
            wounds.values().removeIf(wound -> wound.healedBy > failedUpTo && wound.healedBy <= upToWrites);
        }
    }

    /** A flush has answered that all is well, and nothing is durable. */
    void lieOfFlush(long upToWrites) {
        liedUpTo = Math.max(liedUpTo, upToWrites);
    }

    /** Another process opens the file: to it, flushes answer what they do. */
    void forgetFailedFlush() {
        failedUpTo = 0;
    }

    /** How many of a page's writes a flush covers: up to the last that is neither later nor lost to flushes. */
    private int covered(Page page, long upToWrites) {
        int covered = 0;
        for (int i = 0; i < page.sequences.size() && page.sequences.get(i) <= upToWrites; i++) {
            covered = page.sequences.get(i) > failedUpTo ? i + 1 : covered;
        }
        return covered;
    }

    /** A flush has failed: the kernel has dropped the pages, and later flushes know nothing of what was written before. */
    void failFlush() {
        failedUpTo = writes;
    }

    /** Settles the writes that a dead process had in flight; what it completed stays. */
    void kill(SimulatedFolder owner, Gen gen) {
        for (int i = inFlight.size() - 1; i >= 0; i--) {
            if (inFlight.get(i).owner == owner) {
                abandon(inFlight.get(i), gen);
            }
        }
        failedUpTo = 0;
    }

    /** Decides for every page that was not flushed what of it survives. */
    void losePower(PowerLoss loss, Gen gen) {
        while (!inFlight.isEmpty()) {
            abandon(inFlight.get(inFlight.size() - 1), gen);
        }
        for (int i = 0; i < dirty.size(); i++) {
            Page page = pages.get(dirty.getInt(i));
            byte[] newest = page.newest();
            long first = page.sequences.get(0);
            page.durable = survivor(page, loss, gen);
            if (!Arrays.equals(newest, page.durable)) {
                reopenWound(dirty.getInt(i));
                if (first <= liedUpTo) {
                    wound(dirty.getInt(i), Fault.LYING_FLUSH, first(newest), first(page.durable));
                }
            }
            page.unflushed.clear();
            page.sequences.clear();
        }
        dirty.clear();
        failedUpTo = 0;
        liedUpTo = 0;
    }

    /** What made a page whole again did not survive. */
    private void reopenWound(int page) {
        Wound wound = wounds.get(page);
        if (wound != null) {
            wound.healedBy = 0;
        }
    }

    private byte[] survivor(Page page, PowerLoss loss, Gen gen) {
        PowerLoss.Fate fate = loss.ofPage(gen);
        int applied = fate == PowerLoss.Fate.APPLIED ? gen.below(page.unflushed.size()) : 0;
        return switch (allowed(fate, page, applied)) {
            case LOST -> page.durable;
            case APPLIED -> page.unflushed.get(applied);
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

    /** The last write survives where the drive may not do what chance has chosen. */
    private PowerLoss.Fate allowed(PowerLoss.Fate fate, Page page, int applied) {
        boolean happens = switch (fate) {
            case LOST -> faults.mayHappen(Fault.DROPPED_WRITE);
            case TORN -> faults.mayHappen(Fault.TORN_WRITE);
            case APPLIED -> applied == page.unflushed.size() - 1 || faults.mayHappen(Fault.REORDERED_WRITE);
            case LAST -> true;
        };
        return happens ? fate : PowerLoss.Fate.LAST;
    }

    private void append(int pageNumber, byte[] content) {
        Page page = pages.get(pageNumber);
        if (page == null) {
            page = new Page();
            pages.put(pageNumber, page);
            written.addInt(pageNumber);
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
                heal((int) page);
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
