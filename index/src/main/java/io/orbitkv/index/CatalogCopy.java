package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.StorageFiles;
import java.io.File;
import java.nio.ByteBuffer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.lmdbjava.Dbi;
import org.lmdbjava.DirectBufferProxy;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;
import org.lmdbjava.LmdbException;
import org.lmdbjava.Meta;
import org.lmdbjava.Txn;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The catalog as one data folder keeps it: a file of LMDB, written in transactions. Guarded by the catalog's lock. */
final class CatalogCopy implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(CatalogCopy.class);

    /** LMDB's name for its file. */
    private static final String FILE_NAME = "data.mdb";

    private static final int FILE_MODE = 0600;

    private final String folder;
    private final String path;
    private final long mapBytes;
    private final Env<DirectBuffer> env;
    private final Dbi<DirectBuffer> rows;
    private final CatalogCodec codec;
    private final UnsafeBuffer key = new UnsafeBuffer(ByteBuffer.allocateDirect(CatalogCodec.KEY_BYTES_MAX));
    private final UnsafeBuffer value = new UnsafeBuffer(ByteBuffer.allocateDirect(CatalogCodec.VALUE_BYTES_MAX));
    private final UnsafeBuffer keyView = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer valueView = new UnsafeBuffer(0, 0);
    private Txn<DirectBuffer> txn;

    private CatalogCopy(String folder, long mapBytes, CatalogCodec codec) {
        this.folder = folder;
        this.path = file(folder);
        this.mapBytes = mapBytes;
        this.codec = codec;
        this.env = openEnv(folder);
        boolean good = false;
        try {
            this.rows = env.openDbi((byte[]) null);
            good = true;
        } finally {
            if (!good) {
                env.close();
            }
        }
    }

    /** Loads LMDB, once; where that fails, whoever opens a catalog hears why. */
    static void loadLibrary() {
        try {
            Meta.version();
        } catch (LinkageError | RuntimeException e) {
            LOG.debug("LMDB can't be loaded ahead", e);
        }
    }

    static String file(String folder) {
        return folder + "/" + FILE_NAME;
    }

    /** Lets LMDB at a file that was read and found good. */
    static CatalogCopy open(String folder, long mapBytes, CatalogCodec codec) {
        return new CatalogCopy(folder, mapBytes, codec);
    }

    /** Makes the file, with all of its blocks, and nothing in it. */
    static CatalogCopy create(String folder, long mapBytes, CatalogCodec codec) {
        StorageFiles.makeFolder(folder);
        String path = file(folder);
        if (StorageFiles.exists(path)) {
            throw new OrbitKvException(ErrorCode.CATALOG, "there is a catalog already: " + path + "; open it instead");
        }
        CatalogCopy copy = new CatalogCopy(folder, mapBytes, codec);
        boolean good = false;
        try {
            // LMDB has just made the file; it grows it by writing, so its blocks are taken here, once.
            StorageFiles.allocate(path, mapBytes);
            StorageFiles.syncFolder(folder);
            good = true;
            return copy;
        } finally {
            if (!good) {
                copy.close();
            }
        }
    }

    private Env<DirectBuffer> openEnv(String folder) {
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

    String folder() {
        return folder;
    }

    String path() {
        return path;
    }

    void begin() {
        try {
            txn = env.txnWrite();
        } catch (LmdbException e) {
            throw failed("begin a transaction", e);
        }
    }

    /** The value under the key that was encoded last, or null; valid until the next change. */
    DirectBuffer get() {
        aim(false);
        try {
            return rows.get(txn, keyView);
        } catch (LmdbException e) {
            throw failed("read a row", e);
        }
    }

    /** Writes the row that was encoded last. */
    void put() {
        aim(true);
        try {
            rows.put(txn, keyView, valueView);
        } catch (LmdbException e) {
            throw failed("write a row", e);
        }
    }

    /** Removes the row whose key was encoded last; one that isn't there is fine. */
    void remove() {
        aim(false);
        try {
            rows.delete(txn, keyView);
        } catch (LmdbException e) {
            throw failed("remove a row", e);
        }
    }

    /** Copies the row that was encoded last to where LMDB can read it. */
    private void aim(boolean withValue) {
        byte[] keyBytes = codec.key();
        key.putBytes(0, keyBytes);
        keyView.wrap(key, 0, keyBytes.length);
        if (withValue) {
            byte[] valueBytes = codec.value();
            value.putBytes(0, valueBytes);
            valueView.wrap(value, 0, valueBytes.length);
        }
    }

    /** Writes the transaction's own number as its last row; answers it. */
    long number() {
        long number = txn.getId();
        codec.transaction(number);
        put();
        return number;
    }

    /** Makes the transaction durable. */
    void commit() {
        try {
            txn.commit();
        } catch (LmdbException e) {
            throw failed("commit", e);
        }
    }

    /** Ends the transaction, and drops it unless it was committed. */
    void end() {
        if (txn != null) {
            Txn<DirectBuffer> ended = txn;
            txn = null;
            ended.close();
        }
    }

    private OrbitKvException failed(String verb, LmdbException e) {
        if (e instanceof Env.MapFullException) {
            return new OrbitKvException(
                    ErrorCode.CATALOG_FULL,
                    "the catalog " + path + " is full at " + mapBytes
                            + " bytes; a store with a larger cap gets a larger one",
                    e);
        }
        return new OrbitKvException(
                ErrorCode.CATALOG,
                "LMDB cannot " + verb + " in " + path + ": " + e.getMessage() + "; check the drive and stop using it",
                e);
    }

    @Override
    public void close() {
        env.close();
    }
}
