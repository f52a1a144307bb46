package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import io.orbitkv.kit.Faults;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.SyncOutcome;
import io.orbitkv.suite.Violation.Kind;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

/**
 * What a store may do on a drive that answers errors, hangs or lies: a write or a flush that fails, or any transfer that takes
 * too long, takes the drive out of service until it is well again; an opening that meets an error refuses. Not thread-safe.
 */
final class DriveModel {
    /** How an opening may refuse what a lying drive has made of a folder; an opening that miscounts is never one of them. */
    private static final Set<ErrorCode> REFUSALS = Set.of(
            ErrorCode.DRIVE,
            ErrorCode.NO_SPACE,
            ErrorCode.SEGMENT_HEADER,
            ErrorCode.OTHER_STORE,
            ErrorCode.OTHER_VERSION,
            ErrorCode.FOLDER_SET);

    private final Faults faults;
    private final Map<Fault, Long> before = new EnumMap<>(Fault.class);

    DriveModel(Faults faults) {
        this.faults = faults;
        begin();
    }

    /** A life, or an opening, begins. */
    void begin() {
        for (Fault fault : Fault.values()) {
            before.put(fault, faults.count(fault));
        }
    }

    private boolean since(Predicate<Fault> which) {
        return before.entrySet().stream()
                .anyMatch(entry -> which.test(entry.getKey()) && faults.count(entry.getKey()) > entry.getValue());
    }

    private boolean ever(Predicate<Fault> which) {
        return before.keySet().stream().anyMatch(fault -> which.test(fault) && faults.count(fault) > 0);
    }

    /** Whether the drive has done anything since the run began that its contract forbids. */
    boolean isTainted() {
        return ever(fault -> !fault.isOfContract() && fault != Fault.HANG);
    }

    /** Whether it ever delivered or kept other bytes than it was given. */
    boolean hasLied() {
        return ever(Fault::isLie);
    }

    /** Whether reads may have failed: those that waited for a drive that went out do, too. */
    boolean hasFailedReads() {
        return ever(Fault::isError);
    }

    /** Whether a drive may be, or have been, out of service in this life. */
    boolean mayBeOutOfService() {
        return since(fault -> fault.isError() && fault != Fault.READ_ERROR);
    }

    void checkSync(SyncOutcome outcome) {
        boolean allowed = outcome == SyncOutcome.REACHED || (outcome == SyncOutcome.FAILED && mayBeOutOfService());
        if (!allowed) {
            throw new Violation(Kind.OTHER, "a sync ended as " + outcome);
        }
    }

    /** Whether an opening may refuse the folder as it did. */
    boolean mayRefuse(OrbitKvException refusal) {
        return REFUSALS.contains(refusal.code()) && (since(fault -> !fault.isOfContract()) || hasLied());
    }
}
