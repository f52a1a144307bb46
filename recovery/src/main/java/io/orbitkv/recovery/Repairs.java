package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.QuarantineRow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a verification can put right: pages that others imply are written again, wrong blocks go into quarantine. Nothing is
 * deleted, shortened or moved; each step leaves the folder as good as it was or better, so a death between two is harmless.
 */
final class Repairs {
    private static final int SHOWN_MAX = 100;

    /** As an opening: places in quarantine take at most an eighth of the catalog. */
    private static final int CATALOG_BYTES_A_PLACE = 512;

    private final StoreView view;
    private final Map<Integer, Long> headers = new TreeMap<>();
    private final Map<Integer, Long> footers = new TreeMap<>();
    private final Map<Integer, Long> batchHeaders = new TreeMap<>();
    private final List<QuarantineRow> wrong = new ArrayList<>();
    private final List<String> shown = new ArrayList<>();
    private final long placesMax;
    private long planned;

    Repairs(StoreView view) {
        this.view = view;
        this.placesMax = view.catalog().mapBytes() / CATALOG_BYTES_A_PLACE
                - view.catalog().quarantine().size();
    }

    void header(int segment, long use) {
        headers.put(segment, use);
        plan(segment, 0, "write the header again, use " + use);
    }

    void footer(int segment, long use) {
        footers.put(segment, use);
        plan(segment, view.geometry().segmentPages() - 1, "write the footer again from the batches");
    }

    void batchHeaders(int segment, long use, int page) {
        batchHeaders.put(segment, use);
        plan(segment, page, "write the batch headers again from the footer");
    }

    void block(int segment, long use, int page, long key0) {
        if (wrong.size() < placesMax) {
            wrong.add(new QuarantineRow(segment, use, page, key0, System.currentTimeMillis()));
            plan(segment, page, "put the block in quarantine");
        }
    }

    private void plan(int segment, int page, String what) {
        planned++;
        if (shown.size() < SHOWN_MAX) {
            shown.add(view.file(segment) + " at byte " + view.geometry().fileOffset(segment, page) + " (segment "
                    + segment + " page " + page + "): " + what);
        }
    }

    long planned() {
        return planned;
    }

    /** The first steps, for people. */
    List<String> shown() {
        return List.copyOf(shown);
    }

    /** Does it all; answers how many steps were done. The folders are locked. */
    long apply() {
        long done = 0;
        try (SegmentReader reader = new SegmentReader(view.folders(), view.geometry())) {
            for (Map.Entry<Integer, Long> one : headers.entrySet()) {
                reader.writeHeader(one.getKey(), one.getValue());
                done++;
            }
            for (Map.Entry<Integer, Long> one : footers.entrySet()) {
                reader.readBatches(one.getKey(), one.getValue());
                done += reader.writeFooter() ? 1 : 0;
            }
            for (Map.Entry<Integer, Long> one : batchHeaders.entrySet()) {
                reader.readFooter(one.getKey(), one.getValue());
                reader.writeBatchHeaders();
                done++;
            }
        }
        return done + quarantine();
    }

    private long quarantine() {
        if (wrong.isEmpty()) {
            return 0;
        }
        if (!view.lost().isEmpty()) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_SET,
                    "a folder of the store holds nothing, so the catalog can't be written; open the store once, then repair");
        }
        List<String> paths =
                view.folders().list().stream().map(FolderNames::catalogPath).toList();
        try (Catalog catalog = Catalog.open(paths, view.copies(), WindowProbe.NONE)) {
            catalog.level();
            try (Catalog.Batch batch = catalog.begin()) {
                wrong.forEach(batch::putQuarantine);
                batch.addCounter(CatalogCounter.WRONG_BLOCKS, wrong.size());
                batch.commit();
            }
        }
        return wrong.size();
    }
}
