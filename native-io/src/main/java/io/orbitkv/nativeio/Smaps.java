package io.orbitkv.nativeio;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads /proc/self/smaps: which pages a mapping really got. */
final class Smaps {
    private static final Path FILE = Path.of("/proc/self/smaps");
    private static final int RADIX = 16;

    private Smaps() {}

    /** Bytes on huge pages in the mappings that overlap a range, at most the range's length; 0 where it can't be told. */
    static long hugeBytes(long address, long length) {
        long sum = 0;
        boolean inside = false;
        try (BufferedReader lines = Files.newBufferedReader(FILE)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                int dash = line.indexOf('-');
                int space = line.indexOf(' ');
                if (dash > 0
                        && space > dash
                        && Character.digit(line.charAt(0), RADIX) >= 0
                        && line.indexOf(':') > space) {
                    long start = Long.parseUnsignedLong(line.substring(0, dash), RADIX);
                    long end = Long.parseUnsignedLong(line.substring(dash + 1, space), RADIX);
                    inside = start < address + length && end > address;
                } else if (inside && isHugeCount(line)) {
                    sum += kibibytes(line) << 10;
                }
            }
        } catch (IOException e) {
            return 0;
        }
        return Math.min(sum, length);
    }

    private static boolean isHugeCount(String line) {
        return line.startsWith("AnonHugePages:")
                || line.startsWith("ShmemPmdMapped:")
                || line.startsWith("Private_Hugetlb:")
                || line.startsWith("Shared_Hugetlb:");
    }

    private static long kibibytes(String line) {
        String value = line.substring(line.indexOf(':') + 1).trim();
        return Long.parseLong(value.substring(0, value.indexOf(' ')));
    }
}
