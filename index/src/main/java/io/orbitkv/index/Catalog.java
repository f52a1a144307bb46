package io.orbitkv.index;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFiles;
import io.orbitkv.nativeio.WindowProbe;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.DirectBuffer;

/**
 * What must survive beside the log: store id and sizes, namespaces with their epochs, segments, quarantined places,
 * counters. LMDB keeps it, in one file that is preallocated to its full length.
 *
 * <p>Read once, at opening, by {@link CatalogFile}, which checks every page and every row; from then on only written,
 * in batches: a batch is one transaction, durable when {@link Batch#commit()} returns. Nothing on a hot path comes
 * here. Safe from any thread: one lock is held from {@link #begin()} to the end of the batch.
 *
 * <p>Where a store has several data folders, each has a file: namespaces and counters are the same in all of them, segments
 * and quarantined places stand in the file of their own folder only, so that each folder that is left is whole without the
 * others. A batch is committed to one file after the other. Each commit has a stamp of chance, which the next one remembers:
 * a file whose stamp is the last but one is one that a death kept the last commit from, and any other one has missed more.
 *
 * <p>LMDB runs without its own lock file: the data folder's lock keeps other processes out.
 */
public final class Catalog implements AutoCloseable {
    /** The version of the format on the drive that this program reads and writes, for a store in one folder. */
    public static final int FORMAT_VERSION = CatalogCodec.FORMAT_VERSION;

    /** The same for a store in several folders. */
    public static final int FORMAT_VERSION_FOLDERS = CatalogCodec.FORMAT_VERSION_FOLDERS;

    private static final long MAP_BYTES_MIN = 1L << 20;
    private static final long MAP_BYTES_MAX = 256L << 20;

    private static final AtomicBoolean WARMED = new AtomicBoolean();

    private final WindowProbe probe;
    private final CatalogContents atOpening;
    private final CatalogCopy[] copies;
    private final boolean[] behind;
    private final ReentrantLock lock = new ReentrantLock();
    private final CatalogCodec codec;
    private final SplittableRandom stamps = new SplittableRandom(new SecureRandom().nextLong());
    private final long[] counters = new long[CatalogCounter.values().length];
    private final Map<Long, NamespaceRow> namespaces = new TreeMap<>();
    private volatile CatalogIdentity identity;
    private long transaction;

    private long spareBytes;

    /** A commit came to an end in some of the files only: what holds is for the next opening to say. */
    private boolean torn;

    private boolean closed;

    private Catalog(CatalogContents contents, CatalogCodec codec, WindowProbe probe) {
        this.probe = probe;
        this.atOpening = contents;
        this.identity = contents.identity();
        this.codec = codec;
        this.copies = new CatalogCopy[contents.identity().folders()];
        this.behind = new boolean[copies.length];
        this.transaction = contents.transaction();
        for (CatalogCounter counter : CatalogCounter.values()) {
            counters[counter.ordinal()] = contents.counter(counter);
        }
        contents.namespaces().forEach(row -> namespaces.put(row.id64(), row));
    }

    /**
     * Loads the library that catalogs are written with, on a thread of its own, while the caller does what can be done
     * before: it takes some 0.3 s of a core, once a process. Any number of calls; none has to be waited for.
     */
    public static void warmUp() {
        if (WARMED.compareAndSet(false, true)) {
            Thread loader = new Thread(CatalogCopy::loadLibrary, "orbitkv-load");
            loader.setDaemon(true);
            loader.start();
        }
    }

    /** Whether a folder holds a catalog's file, in whatever state. */
    public static boolean exists(String folder) {
        return StorageFiles.exists(CatalogCopy.file(folder));
    }

    /** Bytes that the catalog of a store takes on the drive: 1/1024 of the cap, between 1 MiB and 256 MiB. */
    public static long mapBytes(long capBytes) {
        long wanted = capBytes / 1024 / MAP_BYTES_MIN * MAP_BYTES_MIN;
        return Math.min(MAP_BYTES_MAX, Math.max(MAP_BYTES_MIN, wanted));
    }

    /**
     * Makes a catalog and opens it. Where the store has several folders it lacks the files of the others: {@link #add} them.
     *
     * @param folder where its file goes; made unless it exists, and without a catalog
     * @param identity what the store is
     * @param mapBytes its length for good, a multiple of 4096
     * @param probe is told of commits
     * @return the catalog, durable with its folder; the folder's own name in its parent is the caller's to sync
     */
    public static Catalog create(String folder, CatalogIdentity identity, long mapBytes, WindowProbe probe) {
        Long[] zeros = new Long[CatalogCounter.values().length];
        Arrays.fill(zeros, 0L);
        CatalogContents contents =
                new CatalogContents(identity, 0, mapBytes, List.of(zeros), List.of(), List.of(), List.of());
        Catalog catalog = new Catalog(contents, new CatalogCodec(), probe);
        long number = catalog.fill(folder, identity, mapBytes);
        if (catalog.copies.length == 1) {
            catalog.transaction = number;
        }
        return catalog;
    }

    /**
     * Adds the file of a folder that has none: namespaces and counters as they were at opening, nothing of segments.
     *
     * @param number the folder's number
     * @param folder where the file goes
     * @param mapBytes its length for good
     */
    public void add(int number, String folder, long mapBytes) {
        fill(folder, identity().inFolder(number), mapBytes);
    }

    /** Makes a file and fills it in one commit: it holds nothing of a store, or all that it has to. */
    private long fill(String folder, CatalogIdentity identity, long mapBytes) {
        CatalogCopy copy = CatalogCopy.create(folder, mapBytes, codec);
        boolean good = false;
        try {
            long number = commitShared(copy, identity);
            good = true;
            copies[identity.folder()] = copy;
            return number;
        } finally {
            if (!good) {
                copy.close();
            }
        }
    }

    /** Commits to one file what all have in common as it was at opening, and whose it is; the transaction's number. */
    private long commitShared(CatalogCopy copy, CatalogIdentity identity) {
        probe.enter(CrashWindow.CATALOG_COMMIT);
        try {
            copy.begin();
            codec.identity(identity);
            copy.put();
            putShared(copy);
            long number = copy.number();
            copy.commit();
            return number;
        } finally {
            probe.leave(CrashWindow.CATALOG_COMMIT);
            copy.end();
        }
    }

    /** Writes what all files have in common as it was at opening. */
    private void putShared(CatalogCopy copy) {
        for (NamespaceRow row : atOpening.namespaces()) {
            codec.namespace(row);
            copy.put();
        }
        for (CatalogCounter counter : CatalogCounter.values()) {
            if (atOpening.counter(counter) != 0) {
                codec.counter(counter, atOpening.counter(counter));
                copy.put();
            }
        }
    }

    /**
     * Opens the catalog of a store in one folder: reads and checks all of it, then lets LMDB at it.
     *
     * @param folder where its file is
     * @param probe is told of commits
     * @return the catalog
     * @throws OrbitKvException {@link ErrorCode#CATALOG} when the file is missing or damaged: nothing was changed;
     *     {@link ErrorCode#OTHER_VERSION} when another version wrote it
     */
    public static Catalog open(String folder, WindowProbe probe) {
        return open(List.of(folder), new CatalogCopies(Arrays.asList(read(folder))), probe);
    }

    /**
     * Opens the catalog of a store in several folders, which were read and found to belong together.
     *
     * @param folders where its files are, in the order of the folders' numbers
     * @param read what was read of each; those without contents are to be {@link #add}ed
     * @param probe is told of commits
     * @return the catalog
     */
    public static Catalog open(List<String> folders, CatalogCopies read, WindowProbe probe) {
        Catalog catalog = new Catalog(read.together(), new CatalogCodec(), probe);
        boolean good = false;
        try {
            for (int i = 0; i < catalog.copies.length; i++) {
                if (read.of(i) != null) {
                    catalog.copies[i] =
                            CatalogCopy.open(folders.get(i), read.of(i).mapBytes(), catalog.codec);
                    catalog.behind[i] = read.isBehind(i);
                }
            }
            good = true;
            return catalog;
        } finally {
            if (!good) {
                catalog.close();
            }
        }
    }

    /** Brings files up that a death kept the last commit from. Call it before the first batch of a life. */
    public void level() {
        for (int i = 0; i < copies.length; i++) {
            if (behind[i]) {
                commitShared(copies[i], identity().inFolder(i));
                behind[i] = false;
            }
        }
    }

    /**
     * Reads a catalog without opening it: nothing is changed, mapped or locked.
     *
     * @param folder where its file is
     * @return all that it holds
     * @throws OrbitKvException as {@link #open}; also when a process commits during the read: try again
     */
    public static CatalogContents read(String folder) {
        String path = CatalogCopy.file(folder);
        CatalogCodec.Reader beforeIt = new CatalogCodec.Reader(path);
        CatalogCodec.Reader newest = new CatalogCodec.Reader(path);
        CatalogFile.Summary summary = CatalogFile.read(path, beforeIt, newest);
        // Each transaction writes its own number into a row. A meta page whose number was damaged would make an older
        // state look like the newest, and bring back what was cleared; these numbers betray it.
        if (newest.transaction() != summary.transaction()
                || (beforeIt.transaction() != -1 && beforeIt.transaction() != summary.transaction() - 1)) {
            throw damaged(
                    path,
                    "its meta pages do not name the transactions that wrote its rows (" + summary.transaction() + ", "
                            + newest.transaction() + ", " + beforeIt.transaction() + ")");
        }
        return newest.contents(summary.mapBytes());
    }

    /** What was read at opening. */
    public CatalogContents atOpening() {
        return atOpening;
    }

    /** What the store is now. */
    public CatalogIdentity identity() {
        return identity;
    }

    /** The transaction that wrote last. */
    public long transaction() {
        lock.lock();
        try {
            return transaction;
        } finally {
            lock.unlock();
        }
    }

    /** The present value of a counter. */
    public long counter(CatalogCounter counter) {
        lock.lock();
        try {
            return counters[counter.ordinal()];
        } finally {
            lock.unlock();
        }
    }

    /**
     * Begins a batch, and holds the catalog's lock for this thread until the batch has ended.
     *
     * @return the batch; commit it or close it, on this thread
     * @throws OrbitKvException {@link ErrorCode#CLOSED}; {@link ErrorCode#CATALOG} after a commit that some of several
     *     folders took and others did not
     */
    public Batch begin() {
        lock.lock();
        boolean good = false;
        try {
            if (closed) {
                throw new OrbitKvException(ErrorCode.CLOSED, "the catalog " + path() + " is closed");
            }
            if (lock.getHoldCount() > 1) {
                throw new OrbitKvException(
                        ErrorCode.BUG, "this thread has a batch of the catalog " + path() + " already");
            }
            if (torn) {
                throw new OrbitKvException(
                        ErrorCode.CATALOG,
                        "the last change of the catalog reached some of " + path()
                                + " only, so no other is made; check the drives and open the store again");
            }
            Batch batch = new Batch();
            good = true;
            return batch;
        } finally {
            if (!good) {
                lock.unlock();
            }
        }
    }

    /** Several changes that become durable together. Used by the thread that began it. */
    public final class Batch implements AutoCloseable {
        private final long[] after = counters.clone();
        private final Map<Long, NamespaceRow> changed = new TreeMap<>();
        private CatalogIdentity identityAfter = identity;
        private boolean ended;

        private Batch() {
            boolean good = false;
            try {
                for (CatalogCopy copy : copies) {
                    copy.begin();
                }
                good = true;
            } finally {
                if (!good) {
                    endAll();
                }
            }
        }

        /**
         * Adds or replaces a namespace.
         *
         * @throws OrbitKvException {@link ErrorCode#BAD_FAMILY} when another namespace has the same short id
         */
        public Batch putNamespace(NamespaceRow row) {
            if (row.id().length != NamespaceRow.ID_BYTES
                    || row.definition().length > NamespaceRow.DEFINITION_BYTES_MAX) {
                throw new OrbitKvException(
                        ErrorCode.BAD_FAMILY,
                        "a namespace has an id of " + row.id().length + " bytes and a definition of "
                                + row.definition().length + "; " + NamespaceRow.ID_BYTES + " and at most "
                                + NamespaceRow.DEFINITION_BYTES_MAX + " are possible");
            }
            requireGoing();
            codec.namespaceKey(row.id64());
            DirectBuffer there = copies[0].get();
            if (there != null) {
                byte[] id = new byte[NamespaceRow.ID_BYTES];
                there.getBytes(0, id);
                if (!Arrays.equals(id, row.id())) {
                    throw new OrbitKvException(
                            ErrorCode.BAD_FAMILY,
                            String.format(
                                    "two namespaces share the short id %016x in %s: use another tenant salt",
                                    row.id64(), path()));
                }
            }
            codec.namespace(row);
            changed.put(row.id64(), row);
            return putInAll();
        }

        /** Changes the cap, and how many segments the files have places for. */
        public Batch resize(long capBytes, int segments) {
            requireGoing();
            identityAfter = identity.resized(capBytes, segments);
            for (int i = 0; i < copies.length; i++) {
                codec.identity(identityAfter.inFolder(i));
                copies[i].put();
            }
            return this;
        }

        /** Adds or replaces what is known of a segment. */
        public Batch putSegment(SegmentRow row) {
            requireGoing();
            codec.segment(row);
            copyOf(row.segment()).put();
            return this;
        }

        /** Adds a place that is never indexed again. */
        public Batch putQuarantine(QuarantineRow row) {
            requireGoing();
            codec.quarantine(row);
            copyOf(row.segment()).put();
            return this;
        }

        /** Removes a place from quarantine, since its segment has another use now; one that isn't there is fine. */
        public Batch removeQuarantine(QuarantineRow row) {
            requireGoing();
            codec.quarantineKey(row.segment(), row.useSequence(), row.page());
            copyOf(row.segment()).remove();
            return this;
        }

        /** Sets a counter. */
        public Batch setCounter(CatalogCounter counter, long number) {
            requireGoing();
            after[counter.ordinal()] = number;
            codec.counter(counter, number);
            return putInAll();
        }

        /** Adds to a counter. */
        public Batch addCounter(CatalogCounter counter, long delta) {
            return setCounter(counter, after[counter.ordinal()] + delta);
        }

        /**
         * Makes the batch durable, and ends it.
         *
         * @return the number of the transaction
         * @throws OrbitKvException {@link ErrorCode#CATALOG_FULL}: nothing of the batch happened, unless several folders
         *     were to take it and some did: then the catalog takes no other batch, and the next opening finds this one
         */
        public long commit() {
            requireGoing();
            int done = 0;
            try {
                if (copies.length > 1) {
                    setCounter(CatalogCounter.COMMITS, after[CatalogCounter.COMMITS.ordinal()] + 1);
                    setCounter(CatalogCounter.STAMP_BEFORE, after[CatalogCounter.STAMP.ordinal()]);
                    setCounter(CatalogCounter.STAMP, stamps.nextLong());
                }
                long number = 0;
                for (CatalogCopy copy : copies) {
                    number = copy.number();
                }
                if (!changed.isEmpty()
                        || !identityAfter.equals(identity)
                        || after[CatalogCounter.EPOCH.ordinal()] != counters[CatalogCounter.EPOCH.ordinal()]) {
                    writeSpares(identityAfter, changed, after);
                }
                for (CatalogCopy copy : copies) {
                    probe.enter(CrashWindow.CATALOG_COMMIT);
                    try {
                        copy.commit();
                        done++;
                    } finally {
                        probe.leave(CrashWindow.CATALOG_COMMIT);
                    }
                }
                transaction = copies.length == 1 ? number : after[CatalogCounter.COMMITS.ordinal()];
                System.arraycopy(after, 0, counters, 0, counters.length);
                namespaces.putAll(changed);
                identity = identityAfter;
                return transaction;
            } finally {
                torn |= done > 0 && done < copies.length;
                end();
            }
        }

        /** Drops the batch unless it was committed. */
        @Override
        public void close() {
            end();
        }

        private void end() {
            if (!ended) {
                ended = true;
                try {
                    endAll();
                } finally {
                    lock.unlock();
                }
            }
        }

        private void endAll() {
            for (CatalogCopy copy : copies) {
                copy.end();
            }
        }

        private Batch putInAll() {
            for (CatalogCopy copy : copies) {
                copy.put();
            }
            return this;
        }

        private CatalogCopy copyOf(int segment) {
            return copies[Math.floorMod(segment, copies.length)];
        }

        private void requireGoing() {
            if (ended) {
                throw new OrbitKvException(
                        ErrorCode.BUG, "a batch of the catalog " + path() + " was used after its end");
            }
        }
    }

    /** Replaces the spare copies with what is about to be committed; where it has too much for the cap there is none. */
    private void writeSpares(CatalogIdentity next, Map<Long, NamespaceRow> changed, long[] after) {
        Map<Long, NamespaceRow> all = new TreeMap<>(namespaces);
        all.putAll(changed);
        for (int i = 0; i < copies.length; i++) {
            byte[] bytes = CatalogSpare.encode(next.inFolder(i), all.values(), after);
            String path = CatalogSpare.file(copies[i].folder());
            if (bytes.length <= CatalogSpare.bytesMax(next)) {
                StorageFiles.replace(path, bytes);
            } else {
                StorageFiles.unlink(path);
            }
            spareBytes = bytes.length;
        }
    }

    /** Bytes of the spare copy in each folder; 0 before the first batch. */
    public long spareBytes() {
        return spareBytes;
    }

    /**
     * Reads the spare copy of a catalog: what the store is, its namespaces and counters, as they were at the last change of a
     * namespace or the beginning of the epoch, whichever was later.
     *
     * @param folder where the catalog's file is, or was
     * @return all that it holds; nothing of segments and quarantine
     * @throws OrbitKvException {@link ErrorCode#CATALOG} where there is none, or a damaged one
     */
    public static CatalogContents readSpare(String folder) {
        return CatalogSpare.read(folder);
    }

    /**
     * Makes the file of a catalog from what is known of it, in one commit, and closes it.
     *
     * @param folder where it goes; it holds no catalog
     * @param contents identity with the folder's number, namespaces, counters, places in quarantine; segments don't matter,
     *     since the log knows them
     * @param mapBytes its length for good
     */
    public static void remake(String folder, CatalogContents contents, long mapBytes) {
        Catalog catalog = new Catalog(contents, new CatalogCodec(), WindowProbe.NONE);
        try (CatalogCopy copy = CatalogCopy.create(folder, mapBytes, catalog.codec)) {
            copy.begin();
            try {
                catalog.codec.identity(contents.identity());
                copy.put();
                catalog.putShared(copy);
                for (QuarantineRow row : contents.quarantine()) {
                    catalog.codec.quarantine(row);
                    copy.put();
                }
                copy.number();
                copy.commit();
            } finally {
                copy.end();
            }
        }
    }

    private String path() {
        List<String> paths = new ArrayList<>();
        for (CatalogCopy copy : copies) {
            paths.add(copy == null ? "?" : copy.path());
        }
        return String.join(", ", paths);
    }

    static OrbitKvException damaged(String path, String what) {
        return new OrbitKvException(
                ErrorCode.CATALOG,
                "the catalog " + path + " cannot be used: " + what
                        + "; nothing was changed. Put the file back from a copy, or move the folder away and start with"
                        + " an empty one");
    }

    /** Closes LMDB. Safe to call twice; waits for a batch of another thread. */
    @Override
    public void close() {
        lock.lock();
        try {
            if (!closed) {
                closed = true;
                for (CatalogCopy copy : copies) {
                    if (copy != null) {
                        copy.close();
                    }
                }
            }
        } finally {
            lock.unlock();
        }
    }
}
