package io.orbitkv.nativeio;

/**
 * Misuse, a hostile environment, or broken hardware; expected outcomes (a miss, not admitted, full) are values instead.
 *
 * <p>The message names what failed, where, the value, and what to do, and starts with the code: {@code OKV-202: ...}.
 */
public final class OrbitKvException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final ErrorCode code;

    /**
     * Creates an exception.
     *
     * @param code what kind of error
     * @param message what failed, where, the value, and what to do; without the code
     */
    public OrbitKvException(ErrorCode code, String message) {
        this(code, message, null);
    }

    /**
     * Creates an exception with the one that led to it.
     *
     * @param code what kind of error
     * @param message what failed, where, the value, and what to do; without the code
     * @param cause what led to it, or null
     */
    public OrbitKvException(ErrorCode code, String message, Throwable cause) {
        super(code.label() + ": " + message, cause);
        this.code = code;
    }

    /** What kind of error. */
    public ErrorCode code() {
        return code;
    }
}
