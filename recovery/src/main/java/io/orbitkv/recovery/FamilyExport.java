package io.orbitkv.recovery;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.Tier;
import io.orbitkv.tiers.BlockListing;
import java.io.IOException;
import java.io.OutputStream;
import java.util.HashMap;
import java.util.Map;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Writes the blocks of one family to a stream, oldest segment first: those that a query would find at this moment, each
 * with its bytes proven. Memory: an index of the store and one block.
 */
final class FamilyExport {
    private final StoreView view;
    private final OpeningOptions options;

    FamilyExport(StoreView view, OpeningOptions options) {
        this.view = view;
        this.options = options;
    }

    ExportResult write(Family family, long epoch, OutputStream out) throws IOException {
        Map<Long, Integer> shards = new HashMap<>();
        for (int shard = 0; shard < family.shards(); shard++) {
            shards.put(family.namespace(shard).id64(), shard);
        }
        FamilyFile.Writer writer =
                new FamilyFile.Writer(out, family, view.catalog().identity(), epoch, view.atMillis());
        long dropped = 0;
        try (LogView log = new LogView(view, options);
                SegmentReader reader = new SegmentReader(view.folders(), view.geometry())) {
            log.fill(true);
            int[] order = log.segmentsByUse();
            for (int i = 0; i < order.length; i++) {
                reader.read(order[i], log.useSequence(order[i]));
                dropped += segment(log, reader, shards, writer);
                options.progress().onProgress("exporting segments", i + 1L, order.length);
            }
        }
        writer.end();
        return new ExportResult(writer.blocks(), writer.bytes(), dropped);
    }

    private long segment(LogView log, SegmentReader reader, Map<Long, Integer> shards, FamilyFile.Writer writer)
            throws IOException {
        long dropped = 0;
        byte[] key = new byte[BlockListing.KEY_BYTES];
        byte[] parent = new byte[BlockListing.KEY_BYTES];
        for (int i = 0; i < reader.count(); i++) {
            BlockListing block = reader.listing(i);
            Integer shard = shards.get(block.namespaceId64());
            if (shard == null) {
                continue;
            }
            block.keyTo(key, 0);
            long extent = Extent.pack(reader.segment(), block.firstPage(), Indexing.GENERATION);
            int number = log.numberOf(block.namespaceId64(), block.namespaceEpoch());
            if (number < 0 || !log.index().holds(number, new UnsafeBuffer(key), 0, Tier.NVME, extent)) {
                continue;
            }
            block.region().copyTo(block.parentOffset(), parent, 0, parent.length);
            BlockPlace place = BlockPlace.of(view, reader.segment(), reader.useSequence(), block, BlockState.INDEXED);
            byte[] payload = new byte[place.storedBytes()];
            int computed = reader.checksumOf(place.segment(), place.page(), place.storedBytes(), key, payload);
            if (computed == place.checksum()) {
                writer.block(shard, place, key, parent, payload);
            } else {
                dropped++;
            }
        }
        return dropped;
    }
}
