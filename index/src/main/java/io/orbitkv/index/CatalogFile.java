package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFiles;
import java.util.Arrays;
import java.util.BitSet;

/**
 * Reads LMDB's file by plain reads and checks every page that it would follow, before LMDB maps it: LMDB trusts what it
 * maps, and a flipped bit could kill the JVM or hand a page out twice.
 *
 * <p>What is known of the file (LMDB 0.9, 64-bit, pages of 4096 bytes, little-endian):
 *
 * <pre>
 * page:  page number u64 | pad u16 | flags u16 (1 branch, 2 leaf, 4 overflow, 8 meta) | lower u16, upper u16, or overflow pages u32
 * meta (pages 0 and 1, at 16): magic u32 | version u32 | address u64 | map bytes u64 | tree of free pages 48 | main tree 48
 *        | last page u64 | transaction u64; transaction t is in page t mod 2
 * tree:  pad u32 (in the first: page bytes) | flags u16 | depth u16 | branch, leaf, overflow pages, rows, root u64 each
 * node:  low u16 | high u16 | flags u16 | key bytes u16 | key | data. In a leaf low and high are the data's length, flag 1 says
 *        that the data is the number of an overflow page; in a branch low, high and flags are the number of the page below
 * free:  the tree of free pages maps a transaction u64 to a count u64 and as many page numbers u64, falling
 * </pre>
 */
final class CatalogFile {
    static final int MAGIC = 0xBEEFC0DE;
    static final int VERSION = 1;

    private static final int PAGE_BYTES = MemoryRegion.PAGE_BYTES;
    private static final int PAGE_HEADER_BYTES = 16;
    private static final int META_OFFSET = 16;
    private static final int FREE_TREE = META_OFFSET + 24;
    private static final int MAIN_TREE = META_OFFSET + 72;
    private static final int LAST_PAGE = META_OFFSET + 120;
    private static final int TRANSACTION = META_OFFSET + 128;
    private static final int TREE_BYTES = 48;
    private static final int NODE_HEADER_BYTES = 8;
    private static final int KEY_BYTES_MAX = 511;
    private static final int BRANCH = 1;
    private static final int LEAF = 2;
    private static final int OVERFLOW = 4;
    private static final int META = 8;
    private static final int INTEGER_KEYS = 8;
    private static final int BIG_DATA = 1;
    private static final long NO_ROOT = -1L;

    /** LMDB's own bound (its cursor stack). */
    private static final int DEPTH_MAX = 32;

    /** Receives the rows of the main tree in the order of their keys. */
    interface RowVisitor {
        void onRow(byte[] key, byte[] value);
    }

    private final String path;
    private MemoryRegion pages;
    private long lastPage;

    // Of the tree that is being walked.
    private BitSet used;
    private boolean free;
    private long branchPages;
    private long leafPages;
    private long overflowPages;
    private long rows;
    private byte[] lastKey;
    private RowVisitor visitor;

    private CatalogFile(String path) {
        this.path = path;
    }

    /** What a walk found beside the rows. */
    record Summary(long mapBytes, long transaction, long usedBytes) {}

    /**
     * Checks the file and hands out its rows.
     *
     * @param path the file
     * @param newest receives the rows of the last transaction
     * @param beforeIt receives those of the transaction before it, which the file still holds whole; called first
     * @return what else there is
     * @throws OrbitKvException {@link ErrorCode#CATALOG}
     */
    static Summary read(String path, RowVisitor beforeIt, RowVisitor newest) {
        return new CatalogFile(path).read(beforeIt, newest);
    }

    private Summary read(RowVisitor beforeIt, RowVisitor newestRows) {
        if (!StorageFiles.exists(path)) {
            throw damaged("it is missing");
        }
        long fileBytes = StorageFiles.bytes(path);
        if (fileBytes < 2L * PAGE_BYTES || fileBytes % PAGE_BYTES != 0) {
            throw damaged("it has " + fileBytes + " bytes, which is not a catalog's length: it was cut off");
        }
        try (MemoryRegion metas = newPages(2)) {
            readAll(metas, 2L * PAGE_BYTES);
            checkMeta(metas, 0, fileBytes);
            checkMeta(metas, 1, fileBytes);
            if (metas.getLong(META_OFFSET + 16) != metas.getLong(PAGE_BYTES + META_OFFSET + 16)) {
                throw damaged("its two meta pages name different lengths");
            }
            lastPage = Math.max(metas.getLong(LAST_PAGE), metas.getLong(PAGE_BYTES + LAST_PAGE));
            long first = metas.getLong(TRANSACTION);
            long second = metas.getLong(PAGE_BYTES + TRANSACTION);
            if ((first & 1) != 0 || (second & 1) != 1 || Math.abs(first - second) != 1) {
                throw damaged("its meta pages name transactions " + first + " and " + second);
            }
            return readPages(metas, beforeIt, newestRows);
        }
    }

    private Summary readPages(MemoryRegion metas, RowVisitor beforeIt, RowVisitor newestRows) {
        try (MemoryRegion region = newPages(lastPage + 1)) {
            pages = region;
            readAll(region, (lastPage + 1) * PAGE_BYTES);
            requireSameMetas(metas, region);
            try (MemoryRegion after = newPages(2)) {
                readAll(after, 2L * PAGE_BYTES);
                requireSameMetas(metas, after);
            }
            int newest = region.getLong(TRANSACTION) > region.getLong(PAGE_BYTES + TRANSACTION) ? 0 : 1;
            long usedBytes = (lastPage + 1) * PAGE_BYTES;
            walk(1 - newest, beforeIt);
            walk(newest, newestRows);
            return new Summary(
                    metas.getLong(META_OFFSET + 16),
                    region.getLong((long) newest * PAGE_BYTES + TRANSACTION),
                    usedBytes);
        } finally {
            pages = null;
        }
    }

    private static MemoryRegion newPages(long count) {
        return MemoryRegion.anonymous(count * PAGE_BYTES, PageKind.SMALL, MemoryPurpose.STAGING);
    }

    /**
     * LMDB writes into pages that neither of the last two transactions has, then ends with a meta page: as long as both are
     * what they were when the reading began, both transactions were read whole, whoever writes meanwhile.
     */
    private void requireSameMetas(MemoryRegion before, MemoryRegion now) {
        for (long at = 0; at < 2L * PAGE_BYTES; at += Long.BYTES) {
            if (before.getLong(at) != now.getLong(at)) {
                throw damaged("a commit came while it was read: another process has it");
            }
        }
    }

    private void readAll(MemoryRegion region, long bytes) {
        if (StorageFiles.read(path, region, bytes) != bytes) {
            throw damaged("it ended while it was read");
        }
    }

    private void checkMeta(MemoryRegion metas, int page, long fileBytes) {
        long at = (long) page * PAGE_BYTES;
        boolean good = metas.getLong(at) == page
                && metas.getShort(at + 8) == 0
                && metas.getShort(at + 10) == META
                && metas.getInt(at + META_OFFSET) == MAGIC;
        if (!good) {
            throw damaged("its meta page " + page + " is not one of LMDB");
        }
        int version = metas.getInt(at + META_OFFSET + 4);
        long last = metas.getLong(at + LAST_PAGE);
        long mapBytes = metas.getLong(at + META_OFFSET + 16);
        if (version != VERSION
                || metas.getLong(at + META_OFFSET + 8) != 0
                || metas.getInt(at + FREE_TREE) != PAGE_BYTES
                || metas.getShort(at + FREE_TREE + 4) != INTEGER_KEYS
                || metas.getInt(at + MAIN_TREE) != 0
                || metas.getShort(at + MAIN_TREE + 4) != 0) {
            throw damaged("its meta page " + page + " is of another kind of LMDB file");
        }
        if (mapBytes != fileBytes) {
            throw damaged(
                    "it has " + fileBytes + " bytes and should have " + mapBytes + ": it was cut off or extended");
        }
        if (last < 1 || last >= fileBytes / PAGE_BYTES) {
            throw damaged("its meta page " + page + " names a last page " + last + " outside the file");
        }
    }

    private void walk(int meta, RowVisitor rowVisitor) {
        long at = (long) meta * PAGE_BYTES;
        used = new BitSet();
        used.set(0, 2);
        lastPage = pages.getLong(at + LAST_PAGE);
        visitor = rowVisitor;
        walkTree(at + MAIN_TREE, false);
        walkTree(at + FREE_TREE, true);
    }

    private void walkTree(long tree, boolean freePages) {
        free = freePages;
        branchPages = 0;
        leafPages = 0;
        overflowPages = 0;
        rows = 0;
        lastKey = null;
        int depth = pages.getShort(tree + 6) & 0xFFFF;
        long root = pages.getLong(tree + TREE_BYTES - 8);
        if (depth > DEPTH_MAX || (root == NO_ROOT) != (depth == 0)) {
            throw damaged("a tree has depth " + depth + " and root " + root);
        }
        if (root != NO_ROOT) {
            walkPage(root, depth, null);
        }
        if (pages.getLong(tree + 8) != branchPages
                || pages.getLong(tree + 16) != leafPages
                || pages.getLong(tree + 24) != overflowPages
                || pages.getLong(tree + 32) != rows) {
            throw damaged("the counts of a tree do not fit what it holds");
        }
    }

    /** Walks a page and all below it; {@code lowest}: the separator above it, which no key below may precede. */
    private void walkPage(long page, int levels, byte[] lowest) {
        long at = take(page, 1);
        int flags = pages.getShort(at + 10);
        int lower = pages.getShort(at + 12) & 0xFFFF;
        int upper = pages.getShort(at + 14) & 0xFFFF;
        boolean leaf = flags == LEAF;
        if (flags != (levels == 1 ? LEAF : BRANCH)
                || lower < PAGE_HEADER_BYTES
                || lower > upper
                || upper > PAGE_BYTES
                || (lower & 1) != 0) {
            throw damaged("page " + page + " is no page of a tree at this place");
        }
        if (leaf) {
            leafPages++;
        } else {
            branchPages++;
        }
        int nodes = (lower - PAGE_HEADER_BYTES) / 2;
        if (nodes < (leaf ? 1 : 2)) {
            throw damaged("page " + page + " has " + nodes + " nodes");
        }
        int nodeBytes = 0;
        for (int i = 0; i < nodes; i++) {
            int node = pages.getShort(at + PAGE_HEADER_BYTES + 2L * i) & 0xFFFF;
            if (node < upper || node > PAGE_BYTES - NODE_HEADER_BYTES || (node & 1) != 0) {
                throw damaged("node " + i + " of page " + page + " lies outside it");
            }
            nodeBytes += leaf
                    ? leafNode(page, at, node, i == 0 ? lowest : null)
                    : branchNode(page, at, node, i, levels, lowest);
        }
        // LMDB packs nodes without gaps, so overlapping ones or a wrong bound show here.
        if (nodeBytes != PAGE_BYTES - upper) {
            throw damaged("the nodes of page " + page + " overlap or leave gaps");
        }
    }

    private int branchNode(long page, long at, int node, int i, int levels, byte[] lowest) {
        int keyBytes = keyBytes(page, at, node);
        long below = (pages.getShort(at + node) & 0xFFFFL)
                | (pages.getShort(at + node + 2) & 0xFFFFL) << 16
                | (pages.getShort(at + node + 4) & 0xFFFFL) << 32;
        byte[] separator = bytes(at + node + NODE_HEADER_BYTES, keyBytes);
        if (i > 0 && (lastKey == null || compare(lastKey, separator) >= 0)) {
            throw damaged("the keys of page " + page + " are out of order");
        }
        // The first separator of a branch is not used by look-ups: what counts is the one above it.
        walkPage(below, levels - 1, i == 0 ? lowest : separator);
        return even(NODE_HEADER_BYTES + keyBytes);
    }

    private int leafNode(long page, long at, int node, byte[] lowest) {
        int keyBytes = keyBytes(page, at, node);
        int flags = pages.getShort(at + node + 4);
        long dataBytes = (pages.getShort(at + node) & 0xFFFFL) | (pages.getShort(at + node + 2) & 0xFFFFL) << 16;
        boolean big = flags == BIG_DATA;
        if (flags != 0 && !big) {
            throw damaged("a node of page " + page + " has flags " + flags);
        }
        long inPage = big ? Long.BYTES : dataBytes;
        long dataAt = (long) node + NODE_HEADER_BYTES + keyBytes;
        if (dataAt + inPage > PAGE_BYTES) {
            throw damaged("the data of a node of page " + page + " lies outside it");
        }
        byte[] key = bytes(at + node + NODE_HEADER_BYTES, keyBytes);
        if ((lastKey != null && compare(lastKey, key) >= 0) || (lowest != null && compare(lowest, key) > 0)) {
            throw damaged("the keys of page " + page + " are out of order");
        }
        lastKey = key;
        rows++;
        long value = big ? overflow(page, pages.getLong(at + dataAt), dataBytes) : at + dataAt;
        if (free) {
            freeRow(page, keyBytes, value, dataBytes);
        } else {
            visitor.onRow(key, bytes(value, (int) dataBytes));
        }
        return even(NODE_HEADER_BYTES + keyBytes + (int) inPage);
    }

    private long overflow(long page, long first, long dataBytes) {
        long count = (dataBytes + PAGE_HEADER_BYTES + PAGE_BYTES - 1) / PAGE_BYTES;
        long at = take(first, count);
        if (pages.getShort(at + 10) != OVERFLOW || (pages.getInt(at + 12) & 0xFFFFFFFFL) != count) {
            throw damaged("page " + first + ", named by page " + page + ", is no overflow page of " + count + " pages");
        }
        overflowPages += count;
        return at + PAGE_HEADER_BYTES;
    }

    private void freeRow(long page, int keyBytes, long value, long dataBytes) {
        if (keyBytes != Long.BYTES || dataBytes < Long.BYTES) {
            throw damaged("a list of free pages in page " + page + " is too short");
        }
        long count = pages.getLong(value);
        // The list may have been given more room than it needed.
        if (count < 0 || count > dataBytes / Long.BYTES - 1) {
            throw damaged("a list of free pages in page " + page + " counts " + count);
        }
        long before = Long.MAX_VALUE;
        for (long i = 1; i <= count; i++) {
            long listed = pages.getLong(value + i * Long.BYTES);
            if (listed < 2 || listed > lastPage || listed >= before || used.get((int) listed)) {
                throw damaged("page " + page + " lists page " + listed + " as free, which is wrong");
            }
            used.set((int) listed);
            before = listed;
        }
    }

    /** Claims pages for the part of the file that names them; each belongs to one place only. */
    private long take(long page, long count) {
        if (page < 2 || count < 1 || page > lastPage - count + 1) {
            throw damaged("a page number " + page + " is outside the file");
        }
        for (long i = page; i < page + count; i++) {
            if (used.get((int) i)) {
                throw damaged("page " + i + " is used twice");
            }
            used.set((int) i);
        }
        long at = page * PAGE_BYTES;
        if (pages.getLong(at) != page) {
            throw damaged("page " + page + " bears the number " + pages.getLong(at));
        }
        return at;
    }

    private int keyBytes(long page, long at, int node) {
        int keyBytes = pages.getShort(at + node + 6) & 0xFFFF;
        if (keyBytes > KEY_BYTES_MAX || node + NODE_HEADER_BYTES + keyBytes > PAGE_BYTES) {
            throw damaged("a key of page " + page + " lies outside it");
        }
        return keyBytes;
    }

    private int compare(byte[] a, byte[] b) {
        if (free && a.length == Long.BYTES && b.length == Long.BYTES) {
            // Numbers in native order.
            for (int i = Long.BYTES - 1; i >= 0; i--) {
                if (a[i] != b[i]) {
                    return Integer.compare(a[i] & 0xFF, b[i] & 0xFF);
                }
            }
            return 0;
        }
        return Arrays.compareUnsigned(a, b);
    }

    private byte[] bytes(long offset, int length) {
        byte[] copy = new byte[length];
        pages.copyTo(offset, copy, 0, length);
        return copy;
    }

    private static int even(int bytes) {
        return bytes + (bytes & 1);
    }

    private OrbitKvException damaged(String what) {
        return Catalog.damaged(path, what);
    }
}
