package io.orbitkv.store;

import io.orbitkv.index.History;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import java.util.concurrent.atomic.LongAdder;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.ManyToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;

/**
 * Uses of blocks on their way from those who save, restore and ask to the thread that keeps the history: a bounded queue
 * in which nobody waits. What does not fit is dropped, and counted.
 *
 * <pre>
 * USED    0 8 namespace id64 | 8 4 its epoch | 12 4 blocks | 16 8 bits of those that were stored before
 *         24 8 bits of those that may lie in host memory only | 32 8 tag of the branch, 0: none | 40 32 x blocks: keys
 * ASKED   0 4 blocks found | 4 4 tags that follow | 8 8 x tags: of the blocks behind them, in order
 * </pre>
 *
 * <p>{@link #used} and {@link #asked} are for any thread and allocate nothing.
 */
final class Uses implements AutoCloseable {
    static final int USED = 1;
    static final int ASKED = 2;

    static final int EPOCH = 8;
    static final int COUNT = 12;
    static final int STORED = 16;
    static final int HOST_ONLY = 24;
    static final int BRANCH = 32;
    static final int KEYS = 40;

    static final int TAG_COUNT = 4;
    static final int TAGS = 8;

    /** Tags of one question; what lies behind is not asked. */
    static final int TAGS_MAX = 1024;

    /** Some 60,000 uses: what comes in while the reader sleeps or empties half of the history. */
    private static final int RING_BYTES = 2 << 20;

    /** Messages of one step of the reader. */
    private static final int MESSAGES_MAX = 64;

    private final MemoryRegion memory = MemoryRegion.anonymous(
            RING_BYTES + RingBufferDescriptor.TRAILER_LENGTH, PageKind.SMALL, MemoryPurpose.STAGING);
    private final ManyToOneRingBuffer ring;
    private final LongAdder dropped = new LongAdder();

    Uses() {
        UnsafeBuffer view = new UnsafeBuffer(0, 0);
        memory.wrap(view, 0, RING_BYTES + RingBufferDescriptor.TRAILER_LENGTH);
        ring = new ManyToOneRingBuffer(view);
    }

    /**
     * Blocks of a workspace's turn were used.
     *
     * @param from the first of them
     * @param count how many, at most 64
     * @param stored bits of those that were stored before
     * @param hostOnly bits of those that may lie in host memory only and want to be on the drive
     */
    void used(Workspace work, int from, int count, long stored, long hostOnly) {
        int length = KEYS + count * PrefixIndex.KEY_BYTES;
        int at = ring.tryClaim(USED, length);
        if (at < 0) {
            dropped.add(count);
            return;
        }
        AtomicBuffer buffer = ring.buffer();
        buffer.putLong(at, work.shard.id64());
        buffer.putInt(at + EPOCH, work.binding.epoch());
        buffer.putInt(at + COUNT, count);
        buffer.putLong(at + STORED, stored);
        buffer.putLong(at + HOST_ONLY, hostOnly);
        buffer.putLong(at + BRANCH, work.branch);
        buffer.putBytes(at + KEYS, work.keys(), work.keyOffset(from), count * PrefixIndex.KEY_BYTES);
        ring.commit(at);
    }

    /**
     * Blocks were asked for.
     *
     * @param id64 of their namespace
     * @param keys their keys, back to back from an offset on
     * @param count how many
     * @param found how many of the first were found
     */
    void asked(long id64, DirectBuffer keys, int keysOffset, int count, int found) {
        int tags = Math.min(count - found, TAGS_MAX);
        int at = ring.tryClaim(ASKED, TAGS + tags * Long.BYTES);
        if (at < 0) {
            dropped.add((long) found + tags);
            return;
        }
        AtomicBuffer buffer = ring.buffer();
        buffer.putInt(at, found);
        buffer.putInt(at + TAG_COUNT, tags);
        for (int i = 0; i < tags; i++) {
            buffer.putLong(
                    at + TAGS + i * Long.BYTES,
                    History.tag(id64, keys, keysOffset + (found + i) * PrefixIndex.KEY_BYTES));
        }
        ring.commit(at);
    }

    /** Takes out a few; how many. One thread. */
    int read(MessageHandler handler) {
        return ring.read(handler, MESSAGES_MAX);
    }

    /** What was not read yet, or is being worked on, in bytes of the queue. Any thread. */
    int waitingBytes() {
        return ring.size();
    }

    /** Uses that were lost since the queue was full. Any thread. */
    long dropped() {
        return dropped.sum();
    }

    /** Frees the queue; nobody may call any more. */
    @Override
    public void close() {
        memory.close();
    }
}
