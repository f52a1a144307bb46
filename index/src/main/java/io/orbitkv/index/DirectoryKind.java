package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.util.Locale;

/** How the index finds the run of a key. Both answer the same; each is checked against the other. */
public enum DirectoryKind {
    /** A table of the index's own, without locks: the default. */
    OPEN_ADDRESSING,
    /** Chronicle Map: some 20 times slower, for comparison and as a second opinion when the index is in doubt. */
    CHRONICLE;

    /** The system property that chooses, where the options don't: {@code open-addressing} or {@code chronicle}. */
    public static final String PROPERTY = "index.directory";

    /**
     * What the system property {@value #PROPERTY} says.
     *
     * @return {@link #OPEN_ADDRESSING} where it is not set
     * @throws OrbitKvException {@link ErrorCode#BAD_ARGUMENT} for another value
     */
    public static DirectoryKind configured() {
        String value = System.getProperty(PROPERTY, "");
        switch (value.toLowerCase(Locale.ROOT)) {
            case "":
            case "open-addressing":
                return OPEN_ADDRESSING;
            case "chronicle":
                return CHRONICLE;
            default:
                throw new OrbitKvException(
                        ErrorCode.BAD_ARGUMENT,
                        "the system property " + PROPERTY + " is '" + value
                                + "'; it knows open-addressing (the default) and chronicle");
        }
    }
}
