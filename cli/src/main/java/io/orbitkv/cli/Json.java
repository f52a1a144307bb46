package io.orbitkv.cli;

import java.util.Locale;

/**
 * Writes one JSON object (RFC 8259) in the order of the calls.
 *
 * <p>Numbers that JSON cannot say (NaN, infinity) become null. Not thread-safe.
 */
final class Json {
    private static final int DEPTH_MAX = 16;

    private final StringBuilder out = new StringBuilder(256);
    private final boolean[] filled = new boolean[DEPTH_MAX];
    private final boolean[] array = new boolean[DEPTH_MAX];
    private int depth;

    /** Starts the object. */
    Json() {
        out.append('{');
    }

    /** Opens an object under a name. */
    Json object(String name) {
        name(name);
        return open('{', false);
    }

    /** Opens an object as the next element of an array. */
    Json element() {
        separate();
        return open('{', false);
    }

    /** Opens an array under a name. */
    Json array(String name) {
        name(name);
        return open('[', true);
    }

    /** Closes the innermost object or array. */
    Json end() {
        if (depth == 0) {
            throw new IllegalStateException("nothing is open");
        }
        out.append(array[depth] ? ']' : '}');
        depth--;
        return this;
    }

    /** Writes a string, or null. */
    Json put(String name, String value) {
        name(name);
        string(value);
        return this;
    }

    /** Writes a whole number. */
    Json put(String name, long value) {
        name(name);
        out.append(value);
        return this;
    }

    /** Writes a number with up to six digits behind the point. */
    Json put(String name, double value) {
        name(name);
        number(value);
        return this;
    }

    /** Writes a truth value. */
    Json put(String name, boolean value) {
        name(name);
        out.append(value);
        return this;
    }

    /** Adds a string to an array. */
    Json add(String value) {
        separate();
        string(value);
        return this;
    }

    /** The object on one line; everything that was opened must be closed. */
    @Override
    public String toString() {
        if (depth != 0) {
            throw new IllegalStateException(depth + " objects or arrays are still open");
        }
        return out + "}";
    }

    private Json open(char bracket, boolean isArray) {
        out.append(bracket);
        depth++;
        filled[depth] = false;
        array[depth] = isArray;
        return this;
    }

    private void name(String name) {
        if (array[depth]) {
            throw new IllegalStateException("an element of an array has no name: " + name);
        }
        separate();
        string(name);
        out.append(':');
    }

    private void separate() {
        if (filled[depth]) {
            out.append(',');
        }
        filled[depth] = true;
    }

    private void number(double value) {
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            out.append("null");
            return;
        }
        if (Math.abs(value) >= 1e15) {
            out.append(value);
            return;
        }
        String text = String.format(Locale.ROOT, "%.6f", value);
        int end = text.length();
        while (text.charAt(end - 1) == '0') {
            end--;
        }
        out.append(text, 0, text.charAt(end - 1) == '.' ? end - 1 : end);
    }

    private void string(String value) {
        if (value == null) {
            out.append("null");
            return;
        }
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            character(value, i);
        }
        out.append('"');
    }

    private void character(String value, int at) {
        char c = value.charAt(at);
        switch (c) {
            case '"', '\\' -> out.append('\\').append(c);
            case '\n' -> out.append("\\n");
            case '\r' -> out.append("\\r");
            case '\t' -> out.append("\\t");
            default -> {
                if (c < 0x20 || c == 0x7f || isLoneSurrogate(value, at)) {
                    out.append(String.format("\\u%04x", (int) c));
                } else {
                    out.append(c);
                }
            }
        }
    }

    /** Half of a pair has no UTF-8 form; escaped, it survives the way to the reader. */
    private static boolean isLoneSurrogate(String value, int at) {
        char c = value.charAt(at);
        if (Character.isHighSurrogate(c)) {
            return at + 1 == value.length() || !Character.isLowSurrogate(value.charAt(at + 1));
        }
        return Character.isLowSurrogate(c) && (at == 0 || !Character.isHighSurrogate(value.charAt(at - 1)));
    }
}
