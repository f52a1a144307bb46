package io.orbitkv.index;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFiles;
import io.orbitkv.nativeio.WindowProbe;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.lmdbjava.Dbi;
import org.lmdbjava.DirectBufferProxy;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;
import org.lmdbjava.LmdbException;
import org.lmdbjava.Txn;

/**
 * What must survive beside the log: store id and sizes, namespaces with their epochs, segments, quarantined places,
 * counters. LMDB keeps it, in one file that is preallocated to its full length.
 *
 * <p>Read once, at opening, by {@link CatalogFile}, which checks every page and every row; from then on only written,
 * in batches: a batch is one transaction, durable when {@link Batch#commit()} returns. Nothing on a hot path comes
 * here. Safe from any thread: one lock is held from {@link #begin()} to the end of the batch.
 *
 * <p>LMDB runs without its own lock file: the data folder's lock keeps other processes out.
 */
public final class Catalog implements AutoCloseable {
    /** The version of the format on the drive that this program reads and writes. */
    public static final int FORMAT_VERSION = CatalogCodec.FORMAT_VERSION;

    /** LMDB's name for its file. */
    private static final String FILE_NAME = "data.mdb";

    private static final long MAP_BYTES_MIN = 1L << 20;
    private static final long MAP_BYTES_MAX = 256L << 20;
    private static final int FILE_MODE = 0600;

    private final String path;
    private final WindowProbe probe;
    private final CatalogContents atOpening;
    private final Env<DirectBuffer> env;
    private final Dbi<DirectBuffer> rows;
    private final ReentrantLock lock = new ReentrantLock();
    private final CatalogCodec codec = new CatalogCodec();
    private final UnsafeBuffer key = new UnsafeBuffer(ByteBuffer.allocateDirect(CatalogCodec.KEY_BYTES_MAX));
    private final UnsafeBuffer value = new UnsafeBuffer(ByteBuffer.allocateDirect(CatalogCodec.VALUE_BYTES_MAX));
    private final UnsafeBuffer keyView = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer valueView = new UnsafeBuffer(0, 0);
    private final long[] counters = new long[CatalogCounter.values().length];
    private long transaction;
    private boolean closed;

    private Catalog(String path, CatalogContents contents, Env<DirectBuffer> env, WindowProbe probe) {
        this.path = path;
        this.probe = probe;
        this.atOpening = contents;
        this.env = env;
        this.rows = env.openDbi((byte[]) null);
        this.transaction = contents.transaction();
        for (CatalogCounter counter : CatalogCounter.values()) {
            counters[counter.ordinal()] = contents.counter(counter);
        }
    }

    /** Whether a folder holds a catalog's file, in whatever state. */
    public static boolean exists(String folder) {
        return StorageFiles.exists(file(folder));
    }

    /** Bytes that the catalog of a store takes on the drive: 1/1024 of the cap, between 1 MiB and 256 MiB. */
    public static long mapBytes(long capBytes) {
        long wanted = capBytes / 1024 / MAP_BYTES_MIN * MAP_BYTES_MIN;
        return Math.min(MAP_BYTES_MAX, Math.max(MAP_BYTES_MIN, wanted));
    }

    /**
     * Makes a catalog and opens it.
     *
     * @param folder where its file goes; made unless it exists, and without a catalog
     * @param identity what the store is
     * @param mapBytes its length for good, a multiple of 4096
     * @param probe is told of commits
     * @return the catalog, durable with its folder; the folder's own name in its parent is the caller's to sync
     */
    public static Catalog create(String folder, CatalogIdentity identity, long mapBytes, WindowProbe probe) {
        StorageFiles.makeFolder(folder);
        String path = file(folder);
        if (StorageFiles.exists(path)) {
            throw new OrbitKvException(ErrorCode.CATALOG, "there is a catalog already: " + path + "; open it instead");
        }
        Env<DirectBuffer> env = openEnv(folder, path, mapBytes);
        try {
            // LMDB has just made the file; it grows it by writing, so its blocks are taken here, once.
            StorageFiles.allocate(path, mapBytes);
            StorageFiles.syncFolder(folder);
            Long[] zeros = new Long[CatalogCounter.values().length];
            Arrays.fill(zeros, 0L);
            CatalogContents contents = new CatalogContents(
                    identity,
                    0,
                    mapBytes,
                    java.util.List.of(zeros),
                    java.util.List.of(),
                    java.util.List.of(),
                    java.util.List.of());
            Catalog catalog = new Catalog(path, contents, env, probe);
            try (Batch batch = catalog.begin()) {
                batch.put(catalog.codec.identity(identity));
                batch.commit();
            }
            return catalog;
        } catch (RuntimeException e) {
            env.close();
            throw e;
        }
    }

    /**
     * Opens a catalog: reads and checks all of it, then lets LMDB at it.
     *
     * @param folder where its file is
     * @param probe is told of commits
     * @return the catalog
     * @throws OrbitKvException {@link ErrorCode#CATALOG} when the file is missing or damaged: nothing was changed;
     *     {@link ErrorCode#OTHER_VERSION} when another version wrote it
     */
    public static Catalog open(String folder, WindowProbe probe) {
        CatalogContents contents = read(folder);
        String path = file(folder);
        Env<DirectBuffer> env = openEnv(folder, path, contents.mapBytes());
        try {
            return new Catalog(path, contents, env, probe);
        } catch (RuntimeException e) {
            env.close();
            throw e;
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
        String path = file(folder);
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

    private static Env<DirectBuffer> openEnv(String folder, String path, long mapBytes) {
        try {
            return Env.create(DirectBufferProxy.PROXY_DB)
                    .setMapSize(mapBytes)
                    .setMaxDbs(1)
                    .open(new File(folder), FILE_MODE, EnvFlags.MDB_NOLOCK, EnvFlags.MDB_NORDAHEAD);
        } catch (LmdbException e) {
            throw new OrbitKvException(
                    ErrorCode.CATALOG,
                    "LMDB cannot open " + path + ": " + e.getMessage() + "; check its permissions",
                    e);
        }
    }

    /** What was read at opening. */
    public CatalogContents atOpening() {
        return atOpening;
    }

    /** What the store is. */
    public CatalogIdentity identity() {
        return atOpening.identity();
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
     * @throws OrbitKvException {@link ErrorCode#CLOSED}
     */
    public Batch begin() {
        lock.lock();
        try {
            if (closed) {
                throw new OrbitKvException(ErrorCode.CLOSED, "the catalog " + path + " is closed");
            }
            if (lock.getHoldCount() > 1) {
                throw new OrbitKvException(
                        ErrorCode.BUG, "this thread has a batch of the catalog " + path + " already");
            }
            return new Batch(env.txnWrite());
        } catch (RuntimeException e) {
            lock.unlock();
            throw e instanceof LmdbException ? failed("begin a transaction", (LmdbException) e) : e;
        }
    }

    /** Several changes that become durable together. Used by the thread that began it. */
    public final class Batch implements AutoCloseable {
        private final Txn<DirectBuffer> txn;
        private final long[] after = counters.clone();
        private boolean ended;

        private Batch(Txn<DirectBuffer> txn) {
            this.txn = txn;
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
            DirectBuffer there = get(codec.namespaceKey(row.id64()));
            if (there != null) {
                byte[] id = new byte[NamespaceRow.ID_BYTES];
                there.getBytes(0, id);
                if (!Arrays.equals(id, row.id())) {
                    throw new OrbitKvException(
                            ErrorCode.BAD_FAMILY,
                            String.format(
                                    "two namespaces share the short id %016x in %s: use another tenant salt",
                                    row.id64(), path));
                }
            }
            return put(codec.namespace(row));
        }

        /** Adds or replaces what is known of a segment. */
        public Batch putSegment(SegmentRow row) {
            return put(codec.segment(row));
        }

        /** Adds a place that is never indexed again. */
        public Batch putQuarantine(QuarantineRow row) {
            return put(codec.quarantine(row));
        }

        /** Removes a place from quarantine, since its segment has another use now; one that isn't there is fine. */
        public Batch removeQuarantine(QuarantineRow row) {
            codec.quarantineKey(row.segment(), row.useSequence(), row.page());
            aim(false);
            try {
                rows.delete(txn, keyView);
            } catch (LmdbException e) {
                throw failed("remove a row", e);
            }
            return this;
        }

        /** Sets a counter. */
        public Batch setCounter(CatalogCounter counter, long number) {
            after[counter.ordinal()] = number;
            return put(codec.counter(counter, number));
        }

        /** Adds to a counter. */
        public Batch addCounter(CatalogCounter counter, long delta) {
            return setCounter(counter, after[counter.ordinal()] + delta);
        }

        /**
         * Makes the batch durable, and ends it.
         *
         * @return the number of the transaction
         * @throws OrbitKvException {@link ErrorCode#CATALOG_FULL}: nothing of the batch happened
         */
        public long commit() {
            long number;
            probe.enter(CrashWindow.CATALOG_COMMIT);
            try {
                number = txn.getId();
                put(codec.transaction(number));
                txn.commit();
                transaction = number;
                System.arraycopy(after, 0, counters, 0, counters.length);
            } catch (LmdbException e) {
                throw failed("commit", e);
            } finally {
                probe.leave(CrashWindow.CATALOG_COMMIT);
                end();
            }
            return number;
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
                    txn.close();
                } finally {
                    lock.unlock();
                }
            }
        }

        private DirectBuffer get(CatalogCodec encoded) {
            aim(false);
            try {
                return rows.get(txn, keyView);
            } catch (LmdbException e) {
                throw failed("read a row", e);
            }
        }

        private Batch put(CatalogCodec encoded) {
            aim(true);
            try {
                rows.put(txn, keyView, valueView);
            } catch (LmdbException e) {
                throw failed("write a row", e);
            }
            return this;
        }

        /** Copies the row that was encoded last to where LMDB can read it. */
        private void aim(boolean withValue) {
            if (ended) {
                throw new OrbitKvException(ErrorCode.BUG, "a batch of the catalog " + path + " was used after its end");
            }
            byte[] keyBytes = codec.key();
            key.putBytes(0, keyBytes);
            keyView.wrap(key, 0, keyBytes.length);
            if (withValue) {
                byte[] valueBytes = codec.value();
                value.putBytes(0, valueBytes);
                valueView.wrap(value, 0, valueBytes.length);
            }
        }
    }

    private OrbitKvException failed(String verb, LmdbException e) {
        if (e instanceof Env.MapFullException) {
            return new OrbitKvException(
                    ErrorCode.CATALOG_FULL,
                    "the catalog " + path + " is full at " + atOpening.mapBytes()
                            + " bytes; a store with a larger cap gets a larger one",
                    e);
        }
        return new OrbitKvException(
                ErrorCode.CATALOG,
                "LMDB cannot " + verb + " in " + path + ": " + e.getMessage() + "; check the drive and stop using it",
                e);
    }

    static OrbitKvException damaged(String path, String what) {
        return new OrbitKvException(
                ErrorCode.CATALOG,
                "the catalog " + path + " cannot be used: " + what
                        + "; nothing was changed. Put the file back from a copy, or move the folder away and start with"
                        + " an empty one");
    }

    private static String file(String folder) {
        return folder + "/" + FILE_NAME;
    }

    /** Closes LMDB. Safe to call twice; waits for a batch of another thread. */
    @Override
    public void close() {
        lock.lock();
        try {
            if (!closed) {
                closed = true;
                env.close();
            }
        } finally {
            lock.unlock();
        }
    }
}
