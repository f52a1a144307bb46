package io.orbitkv.recovery;

import java.util.List;

/**
 * A place of a block, with its bytes checked.
 *
 * @param place what is listed
 * @param computed CRC32C over the key and the bytes that stand there
 * @param firstBytes the first bytes of the payload as it stands there
 * @param others other places that list the same key, newest first
 */
public record BlockInfo(BlockPlace place, int computed, byte[] firstBytes, List<BlockPlace> others) {
    /** Whether the bytes are those that were saved. */
    public boolean matches() {
        return computed == place.checksum();
    }
}
