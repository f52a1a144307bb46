package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;

/** The half of a replay that runs no store: every policy on the keys of a trace. */
final class SimulateRun {
    private final TraceOptions trace;

    SimulateRun(TraceOptions trace, SimulateOptions simulation, ReplayOptions store, Path plot, CommonOptions common) {
        this.trace = trace;
    }

    /** Runs it; the exit code. */
    int run() {
        trace.workload();
        throw new OrbitKvException(ErrorCode.BAD_FLAG, "the simulator is not there yet");
    }
}
