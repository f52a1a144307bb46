package io.orbitkv.cli;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;

/** Byte sizes as people write them: {@code 128mb}, {@code 1gb}; powers of 1024, a bare number is bytes. */
final class Sizes implements ITypeConverter<Long> {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,18})(kb|mb|gb|tb|b)?");
    private static final String UNITS = "kmgt";
    private static final long BLOCK_BYTES_MIN = 4L << 10;

    /** The largest block that fits a segment with its header and footer pages. */
    private static final long BLOCK_BYTES_MAX = 32L << 20;

    @Override
    public Long convert(String value) {
        return parse(value);
    }

    /**
     * Reads a size.
     *
     * @param text digits, then nothing, {@code b}, {@code kb}, {@code mb}, {@code gb} or {@code tb}, in either case
     * @return bytes, at least 1
     */
    static long parse(String text) {
        Matcher matcher = FORM.matcher(text.trim().toLowerCase(Locale.ROOT));
        if (!matcher.matches()) {
            throw new TypeConversionException("'" + text + "' is not a size; write for example 64kb, 128mb, 1gb, or"
                    + " a whole number of bytes");
        }
        long number = Long.parseLong(matcher.group(1));
        int shift = shift(matcher.group(2));
        if (number == 0 || number > Long.MAX_VALUE >> shift) {
            throw new TypeConversionException("'" + text + "' is out of range; give a size from 1 byte to 8191gb");
        }
        return number << shift;
    }

    private static int shift(String unit) {
        return unit == null || unit.equals("b") ? 0 : 10 * (UNITS.indexOf(unit.charAt(0)) + 1);
    }

    /** Refuses a size of blocks that a store can't have, for commands that make stores. */
    static void requireBlock(CommandSpec spec, long blockBytes) {
        if (blockBytes < BLOCK_BYTES_MIN || blockBytes > BLOCK_BYTES_MAX) {
            throw new ParameterException(
                    spec.commandLine(), "--block-bytes is " + blockBytes + " bytes; give a size from 4kb to 32mb");
        }
    }

    /** A size for people, with three significant digits: {@code 1.17 GiB}. */
    static String text(long bytes) {
        if (bytes < 1024) {
            return bytes + " B";
        }
        double value = bytes;
        int unit = -1;
        while (value >= 1023.5 && unit < UNITS.length() - 1) {
            value /= 1024;
            unit++;
        }
        String form = value < 9.995 ? "%.2f %ciB" : value < 99.95 ? "%.1f %ciB" : "%.0f %ciB";
        return String.format(Locale.ROOT, form, value, Character.toUpperCase(UNITS.charAt(unit)));
    }
}
