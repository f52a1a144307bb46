package io.orbitkv.recovery;

import io.orbitkv.index.CatalogContents;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Extent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Takes the rows of a snapshot into the index. */
final class SnapshotLoad {
    private final PrefixIndex index;
    private final LogScan scan;
    private final Map<Long, OpenedNamespace> byId64 = new HashMap<>();
    private final List<OpenedNamespace> namespaces = new ArrayList<>();
    private final long[] pagesOf;
    private final int[] blocksOf;
    private long blocks;
    private long pages;

    SnapshotLoad(PrefixIndex index, CatalogContents contents, LogScan scan) {
        this.index = index;
        this.scan = scan;
        this.pagesOf = new long[contents.identity().segments()];
        this.blocksOf = new int[contents.identity().segments()];
        contents.namespaces().forEach(row -> {
            OpenedNamespace opened = new OpenedNamespace(row, index.newNamespace());
            namespaces.add(opened);
            byId64.put(row.id64(), opened);
        });
    }

    Snapshot.RowTaker rowsOf(Snapshot.NamespaceList list) {
        int[] numbers = new int[list.id64s().size()];
        for (int i = 0; i < numbers.length; i++) {
            OpenedNamespace known = byId64.get(list.id64s().get(i));
            numbers[i] = known != null && known.row().epoch() == list.epochs().get(i) ? known.number() : -1;
        }
        return (namespace, continuesRun, key0, tag, segment, page, stored, checksum, depth) -> {
            int number = numbers[namespace];
            int taken = Extent.pages(stored);
            boolean good = number >= 0
                    && scan.isSealedInCatalog(segment)
                    && index.load(
                            number,
                            continuesRun,
                            key0,
                            tag,
                            Extent.pack(segment, page, Indexing.GENERATION),
                            stored,
                            checksum,
                            depth);
            if (good) {
                blocks++;
                pages += taken;
                pagesOf[segment] += taken;
                blocksOf[segment]++;
            }
            return good;
        };
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

    List<OpenedNamespace> namespaces() {
        return namespaces;
    }

    long blocks() {
        return blocks;
    }

    long pages() {
        return pages;
    }
}
