package io.orbitkv.recovery;

import io.orbitkv.nativeio.Extent;

/** Takes the rows of a snapshot into the index. */
final class SnapshotLoad implements Snapshot.RowTaker {
    private final Indexing indexing;
    private final LogScan scan;
    private final long[] pagesOf;
    private final int[] blocksOf;
    private long[] id64s;
    private int[] epochs;

    // The row before, whose run the next one may continue.
    private long lastKey0;
    private long lastTag;

    SnapshotLoad(Indexing indexing, LogScan scan, int segments) {
        this.indexing = indexing;
        this.scan = scan;
        this.pagesOf = new long[segments];
        this.blocksOf = new int[segments];
    }

    Snapshot.RowTaker rowsOf(Snapshot.NamespaceList list) {
        id64s = list.id64s().stream().mapToLong(Long::longValue).toArray();
        epochs = list.epochs().stream().mapToInt(Integer::intValue).toArray();
        return this;
    }

    @Override
    public boolean take(
            int namespace,
            boolean continuesRun,
            long key0,
            long tag,
            int segment,
            int page,
            int stored,
            int checksum,
            int depth) {
        if (!scan.isSealedInCatalog(segment) || !indexing.knew(id64s[namespace], epochs[namespace])) {
            return false;
        }
        indexing.takeRow(
                id64s[namespace],
                epochs[namespace],
                continuesRun,
                lastKey0,
                lastTag,
                key0,
                tag,
                Extent.pack(segment, page, Indexing.GENERATION),
                stored,
                checksum,
                depth);
        pagesOf[segment] += Extent.pages(stored);
        blocksOf[segment]++;
        lastKey0 = key0;
        lastTag = tag;
        return true;
    }

    /** What does not fit the catalog's counts; null when all does. */
    String odd() {
        for (int segment = 0; segment < pagesOf.length; segment++) {
            if (pagesOf[segment] > scan.payloadPagesInCatalog(segment)
                    || blocksOf[segment] > scan.blocksInCatalog(segment)) {
                return "it has more blocks of segment " + segment + " than the catalog";
            }
        }
        return null;
    }

    /** Blocks of a segment that the catalog lists and the snapshot does not hold: they had left the index. */
    int evictedBlocks(int segment) {
        return scan.blocksInCatalog(segment) - blocksOf[segment];
    }

    long evictedPages(int segment) {
        return scan.payloadPagesInCatalog(segment) - pagesOf[segment];
    }
}
