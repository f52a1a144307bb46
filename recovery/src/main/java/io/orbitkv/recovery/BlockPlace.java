package io.orbitkv.recovery;

import io.orbitkv.tiers.BlockListing;
import java.util.HexFormat;

/**
 * A place in the log where a block is listed.
 *
 * @param segment the segment
 * @param page the payload's first page in it
 * @param useSequence the use of the segment that lists it
 * @param file the file, within the data folder; with it where the store has several
 * @param fileOffset where the payload starts in the file, in bytes
 * @param key the block's key, 64 hexadecimal digits
 * @param parent the key before it; empty for a first block
 * @param namespaceId64 the first 8 bytes of its namespace's id
 * @param namespaceEpoch the namespace's epoch when it was accepted
 * @param birth its position
 * @param storedBytes bytes of the payload
 * @param logicalBytes bytes once decoded
 * @param codec how it is stored; 0 raw
 * @param checksum CRC32C over key and payload, as listed
 * @param state what it is worth
 */
public record BlockPlace(
        int segment,
        int page,
        long useSequence,
        String file,
        long fileOffset,
        String key,
        String parent,
        long namespaceId64,
        int namespaceEpoch,
        long birth,
        int storedBytes,
        int logicalBytes,
        int codec,
        int checksum,
        BlockState state) {
    static BlockPlace of(StoreView view, int segment, long use, BlockListing block, BlockState state) {
        byte[] bytes = new byte[BlockListing.KEY_BYTES];
        block.keyTo(bytes, 0);
        String key = HexFormat.of().formatHex(bytes);
        block.region().copyTo(block.parentOffset(), bytes, 0, bytes.length);
        return new BlockPlace(
                segment,
                block.firstPage(),
                use,
                view.file(segment),
                view.geometry().fileOffset(segment, block.firstPage()),
                key,
                block.hasParent() ? HexFormat.of().formatHex(bytes) : "",
                block.namespaceId64(),
                block.namespaceEpoch(),
                block.birth(),
                block.storedBytes(),
                block.logicalBytes(),
                block.codec(),
                block.checksum(),
                state);
    }

    BlockPlace in(BlockState other) {
        return new BlockPlace(
                segment,
                page,
                useSequence,
                file,
                fileOffset,
                key,
                parent,
                namespaceId64,
                namespaceEpoch,
                birth,
                storedBytes,
                logicalBytes,
                codec,
                checksum,
                other);
    }
}
