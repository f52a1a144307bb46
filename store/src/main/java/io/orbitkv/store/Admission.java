package io.orbitkv.store;

import io.orbitkv.index.History;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.store.Workspace.BlockState;
import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.NvmeAdmission;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.MessageHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides which blocks are written to the drive when they are saved, and has those that were not offered to it when they
 * are used again. With {@link AdmissionPolicy#ALL} it does nothing at all, and has no history.
 *
 * <p>As an agent it keeps the history of seen keys, on a thread of its own, so that a second's start and the turns of
 * the history delay nobody. Until the history is there, nothing counts as seen. Where it can't be made, everything is
 * let in.
 */
final class Admission implements Agent, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Admission.class);

    private final NvmeAdmission policy;
    private final long historyBytes;
    private final long historyTags;
    private final Uses uses;
    private final MessageHandler handler = this::onMessage;

    /** Offers a block that lies in host memory only to the drive. */
    private SecondOffer offers;

    private volatile History history;
    private volatile boolean failed;

    // Written by the agent's thread.
    private final AtomicLong asked = new AtomicLong();
    private final AtomicLong askedSeen = new AtomicLong();
    private final AtomicLong offered = new AtomicLong();

    /** Takes blocks that were refused once. */
    interface SecondOffer {
        /** The next blocks are of this namespace at this epoch. */
        void begin(long namespaceId64, int epoch);

        /**
         * Offers a block to the drive, if it lies in host memory only.
         *
         * @return whether it is on its way now
         */
        boolean offer(DirectBuffer keys, int keyOffset);
    }

    /**
     * Makes an admission.
     *
     * @param options say which, and how large its history may be
     * @param tierBlocks blocks that the drive holds, about
     */
    Admission(StoreOptions options, long tierBlocks) {
        this.policy = NvmeAdmission.of(options.admission(), this::seen, tierBlocks, options.admissionPrice());
        this.historyBytes = options.historyBytes();
        this.historyTags = NvmeAdmission.MEMORY_TIERS * tierBlocks;
        this.uses = options.admission() == AdmissionPolicy.ALL ? null : new Uses();
    }

    /** Says who takes blocks that were refused once; before the first of them is saved. */
    void offersTo(SecondOffer taker) {
        offers = taker;
    }

    /** Whether blocks may be refused at all. */
    boolean isSelective() {
        return uses != null;
    }

    // ---- saving, restoring, asking: any thread ----

    /**
     * Decides which of a turn's claimed blocks are written to the drive at once. The first one refused ends it for the
     * call: a prefix without its head is of no use there, and what lies behind an unseen block was not seen either.
     */
    void decide(Workspace work) {
        if (!isSelective()) {
            Arrays.fill(work.admitted, 0, work.count, true);
            return;
        }
        for (int i = 0; i < work.count; i++) {
            if (work.states[i] == BlockState.CLAIMED) {
                long tag = History.tag(work.shard.id64(), work.keys(), work.keyOffset(i));
                if (work.branch == NvmeAdmission.NO_BRANCH) {
                    work.branch = tag;
                }
                work.refusing = work.refusing || !failed && !policy.admits(tag);
                work.admitted[i] = !work.refusing;
            }
        }
    }

    /** A turn was saved: notes the use of each of its blocks that is in the store now. */
    void saved(Workspace work) {
        if (!isSelective()) {
            return;
        }
        long present = 0;
        int count = 0;
        while (count < work.count && work.states[count] != BlockState.DROPPED) {
            present |= work.states[count] == BlockState.PRESENT ? 1L << count : 0;
            count++;
        }
        if (count > 0) {
            uses.used(work, 0, count, present, present);
        }
    }

    /** The first blocks of a turn were restored, some of them from host memory, where they may lie only. */
    void restored(Workspace work, int count) {
        if (isSelective() && count > 0) {
            work.branch = NvmeAdmission.NO_BRANCH;
            for (int from = 0; from < count; from += Long.SIZE) {
                uses.used(work, from, Math.min(Long.SIZE, count - from), -1, work.hostOnlyBlocks[from / Long.SIZE]);
            }
        }
    }

    /** A query found the first of some blocks. */
    void asked(FamilyHandle family, DirectBuffer keys, int keysOffset, int count, int found) {
        if (isSelective()) {
            uses.asked(family.shard(0).id64(), keys, keysOffset, count, found);
        }
    }

    private boolean seen(long tag) {
        History known = history;
        return known != null && known.seen(tag);
    }

    // ---- the agent ----

    @Override
    public void onStart() {
        try {
            history = new History(historyBytes, historyTags);
        } catch (RuntimeException | LinkageError e) {
            failed = true;
            LOG.error("the history of seen keys can't be made; every block is written to the drive", e);
        }
    }

    @Override
    public int doWork() {
        return uses.read(handler);
    }

    private void onMessage(int type, MutableDirectBuffer buffer, int at, int length) {
        if (failed) {
            return;
        }
        if (type == Uses.USED) {
            onUsed(buffer, at);
        } else {
            onAsked(buffer, at);
        }
    }

    private void onUsed(MutableDirectBuffer buffer, int at) {
        long id64 = buffer.getLong(at);
        int count = buffer.getInt(at + Uses.COUNT);
        long stored = buffer.getLong(at + Uses.STORED);
        long hostOnly = buffer.getLong(at + Uses.HOST_ONLY);
        long branch = buffer.getLong(at + Uses.BRANCH);
        policy.begin();
        if (hostOnly != 0) {
            offers.begin(id64, buffer.getInt(at + Uses.EPOCH));
        }
        for (int i = 0; i < count; i++) {
            int key = at + Uses.KEYS + i * PrefixIndex.KEY_BYTES;
            long tag = History.tag(id64, buffer, key);
            history.see(tag);
            policy.use(tag, (stored >>> i & 1) != 0 ? NvmeAdmission.NO_BRANCH : branch);
            if ((hostOnly >>> i & 1) != 0 && offers.offer(buffer, key)) {
                offered.lazySet(offered.get() + 1);
            }
        }
    }

    /** Keys are chained: behind one that was never seen, none was. */
    private void onAsked(MutableDirectBuffer buffer, int at) {
        int found = buffer.getInt(at);
        int tags = buffer.getInt(at + Uses.TAG_COUNT);
        int seen = 0;
        while (seen < tags && history.seen(buffer.getLong(at + Uses.TAGS + seen * Long.BYTES))) {
            seen++;
        }
        asked.lazySet(asked.get() + found + tags);
        askedSeen.lazySet(askedSeen.get() + found + seen);
    }

    @Override
    public String roleName() {
        return "orbitkv-admission";
    }

    // ---- numbers: any thread ----

    AdmissionStats stats(Counters counters) {
        History known = history;
        return new AdmissionStats(
                failed ? AdmissionPolicy.ALL : policy.now(),
                counters.admittedBlocks.sum(),
                counters.admittedBytes.sum(),
                counters.refusedBlocks.sum(),
                counters.refusedBytes.sum(),
                offered.get(),
                uses == null ? 0 : uses.waitingBytes(),
                uses == null ? 0 : uses.dropped(),
                known == null ? 0 : known.tags(),
                known == null ? 0 : known.tagsMax(),
                known == null ? 0 : known.bytes(),
                asked.get(),
                askedSeen.get());
    }

    /** Frees the memory; no call is inside, and the agent has ended. */
    @Override
    public void close() {
        if (uses != null) {
            uses.close();
        }
        if (history != null) {
            history.close();
        }
    }
}
