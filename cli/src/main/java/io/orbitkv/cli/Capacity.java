package io.orbitkv.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.TypeConversionException;

/**
 * A capacity as people write it: a share of a trace's unique blocks ({@code 5%}), a size ({@code 16gb}), or blocks
 * ({@code 1000blocks}).
 *
 * @param text how it was written
 * @param share of the unique blocks, 0 to 1, or NaN
 * @param bytes or -1
 * @param blocks or -1
 */
record Capacity(String text, double share, long bytes, long blocks) {
    /** More in one run would take minutes. */
    static final int CAPACITIES_MAX = 64;

    private static final String BLOCKS = "blocks";

    static Capacity parse(String written) {
        String text = written.trim().toLowerCase(Locale.ROOT);
        try {
            if (text.endsWith("%")) {
                double percent = Double.parseDouble(text.substring(0, text.length() - 1));
                if (percent > 0 && percent <= 100) {
                    return new Capacity(text, percent / 100, -1, -1);
                }
            } else if (text.endsWith(BLOCKS)) {
                long blocks = Long.parseLong(
                        text.substring(0, text.length() - BLOCKS.length()).trim());
                if (blocks > 0) {
                    return new Capacity(text, Double.NaN, -1, blocks);
                }
            } else {
                return new Capacity(text, Double.NaN, Sizes.parse(text), -1);
            }
        } catch (NumberFormatException | TypeConversionException e) {
            throw new TypeConversionException(problem(written));
        }
        throw new TypeConversionException(problem(written));
    }

    private static String problem(String written) {
        return "'" + written + "' is not a capacity; write a share above 0% and up to 100%, a size like 16gb, or a"
                + " number of blocks like 1000blocks";
    }

    /** Reads several: one at least, at most {@link #CAPACITIES_MAX}. */
    static List<Capacity> parse(List<String> written) {
        if (written.isEmpty()) {
            throw new TypeConversionException("none is given; write them with commas between, like 5%,16gb,1000blocks");
        }
        if (written.size() > CAPACITIES_MAX) {
            throw new TypeConversionException(
                    written.size() + " capacities are too many; give at most " + CAPACITIES_MAX);
        }
        List<Capacity> capacities = new ArrayList<>();
        for (String text : written) {
            capacities.add(parse(text));
        }
        return capacities;
    }

    /** How many blocks it is; a size is rounded down. */
    long blocks(long uniqueBlocks, long blockBytes) {
        if (blocks >= 0) {
            return blocks;
        }
        return bytes >= 0 ? bytes / blockBytes : (long) (share * uniqueBlocks);
    }
}
