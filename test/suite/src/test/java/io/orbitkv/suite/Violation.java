package io.orbitkv.suite;

/** A store has broken a promise of the model that it is held against. */
final class Violation extends AssertionError {
    private static final long serialVersionUID = 1L;

    /** Which promise. */
    enum Kind {
        /** Bytes were returned that were not saved. */
        WRONG,
        /** A block is gone that was acknowledged and should be there. */
        LOST,
        /** Something else that must not happen. */
        OTHER
    }

    private final Kind kind;

    Violation(Kind kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** What a failure of a run says about the store. */
    static Kind kindOf(Throwable failure) {
        return failure instanceof Violation violation ? violation.kind : Kind.OTHER;
    }
}
