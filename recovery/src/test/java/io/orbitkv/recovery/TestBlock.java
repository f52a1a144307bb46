package io.orbitkv.recovery;

import io.orbitkv.kit.Gen;
import java.util.zip.CRC32C;

/** A block of a test: key and payload are functions of a few numbers, so that nothing has to be remembered. */
record TestBlock(long namespaceId64, int epoch, long number, long parentNumber, int bytes, int version, long birth) {
    static final long NO_PARENT = -1;

    static byte[] key(long number) {
        return new Gen(Gen.mix(number + 77)).bytes(32);
    }

    byte[] key() {
        return key(number);
    }

    byte[] payload() {
        return new Gen(Gen.mix(number * 1_000_003 + version * 31L + namespaceId64)).bytes(bytes);
    }

    int checksum() {
        CRC32C crc = new CRC32C();
        crc.update(key());
        crc.update(payload());
        return (int) crc.getValue();
    }

    int pages() {
        return (bytes + 4095) / 4096;
    }
}
