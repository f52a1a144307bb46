package io.orbitkv.manager;

import io.orbitkv.nativeio.ErrorCode;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** What a manager has done; see {@link Figures} for what each means. Safe from any thread. */
final class ManagerCounters {
    final LongAdder sessionsAccepted = new LongAdder();
    final LongAdder sessionsRefused = new LongAdder();
    final LongAdder requests = new LongAdder();
    final LongAdder requestNanos = new LongAdder();
    final LongAdder badFrames = new LongAdder();
    final LongAdder restoredByClients = new LongAdder();
    final LongAdder overtakenClients = new LongAdder();
    private final Map<ErrorCode, LongAdder> refusals = new EnumMap<>(ErrorCode.class);

    ManagerCounters() {
        for (ErrorCode code : ErrorCode.values()) {
            refusals.put(code, new LongAdder());
        }
    }

    void refused(ErrorCode code) {
        refusals.get(code).increment();
    }

    long refusals() {
        return refusals.values().stream().mapToLong(LongAdder::sum).sum();
    }

    long refusals(ErrorCode code) {
        return refusals.get(code).sum();
    }
}
