package io.orbitkv.bench.trace;

import java.util.Locale;

/**
 * Three columns, {@code time,tokens,hashes}: milliseconds, tokens of the prompt, and a hash for each of its blocks with
 * spaces between. A hash is a whole number, or {@code 0x} and up to 64 hexadecimal digits. The first line may be the
 * heading {@code time,tokens,hashes}.
 */
final class CsvParser implements LineParser {
    private static final String HEADING = "time,tokens,hashes";
    private static final int HEX_DIGITS_MAX = 64;

    /** The golden ratio's bits: spreads what longer hashes lose when they are folded into 64 bits. */
    private static final long FOLD = 0x9E3779B97F4A7C15L;

    private boolean first = true;

    @Override
    public String form() {
        return "each line has to be like 0,1000,17 0x2a (time in ms, tokens of the prompt, hashes of its blocks with"
                + " spaces between)";
    }

    @Override
    public boolean parse(String text, TraceRequest request) throws BadLineException {
        boolean heading = first && HEADING.equals(text.replace(" ", "").toLowerCase(Locale.ROOT));
        first = false;
        if (heading) {
            return false;
        }
        int timeEnd = text.indexOf(',');
        int tokensEnd = text.indexOf(',', timeEnd + 1);
        if (timeEnd < 0 || tokensEnd < 0 || text.indexOf(',', tokensEnd + 1) >= 0) {
            throw new BadLineException(
                    "has " + text.chars().filter(c -> c == ',').count() + " commas and not 2");
        }
        request.time(time(text.substring(0, timeEnd).trim()));
        request.promptTokens(tokens(text.substring(timeEnd + 1, tokensEnd).trim()));
        int at = tokensEnd + 1;
        while (at < text.length()) {
            if (text.charAt(at) == ' ') {
                at++;
                continue;
            }
            int end = text.indexOf(' ', at);
            end = end < 0 ? text.length() : end;
            request.add(hash(text, at, end));
            at = end;
        }
        return true;
    }

    private static double time(String text) throws BadLineException {
        double millis;
        try {
            millis = Double.parseDouble(text);
        } catch (NumberFormatException e) {
            millis = -1;
        }
        if (!(millis >= 0 && millis <= TraceReader.TIME_MILLIS_MAX)) {
            throw new BadLineException("has a time of '" + text + "'; it has to be a number of ms from 0 to "
                    + TraceReader.TIME_MILLIS_MAX);
        }
        return millis;
    }

    private static long tokens(String text) throws BadLineException {
        long tokens;
        try {
            tokens = Long.parseLong(text);
        } catch (NumberFormatException e) {
            tokens = -1;
        }
        if (tokens < 0 || tokens > Integer.MAX_VALUE) {
            throw new BadLineException(
                    "has '" + text + "' tokens; it has to be a whole number from 0 to " + Integer.MAX_VALUE);
        }
        return tokens;
    }

    private static long hash(String text, int from, int end) throws BadLineException {
        try {
            if (text.startsWith("0x", from) && end - from <= 2 + HEX_DIGITS_MAX) {
                long folded = 0;
                for (int at = from + 2; at == from + 2 || at < end; at += 16) {
                    long part = Long.parseUnsignedLong(text, at, Math.min(end, at + 16), 16);
                    folded = folded * FOLD + part;
                }
                return folded;
            }
            return Long.parseUnsignedLong(text, from, end, 10);
        } catch (NumberFormatException e) {
            throw new BadLineException(
                    "has a hash of '" + text.substring(from, Math.min(end, from + 80))
                            + "'; it has to be a whole number from 0 to 18446744073709551615, or 0x and 1 to "
                            + HEX_DIGITS_MAX + " hexadecimal digits",
                    e);
        }
    }
}
