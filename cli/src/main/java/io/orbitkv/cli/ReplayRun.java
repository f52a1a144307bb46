package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;

/** The half of a replay that runs a store: the trace in a child process, the judgement here. */
final class ReplayRun {
    private final TraceOptions trace;
    private final ReplayOptions options;
    private final Path plot;
    private final CommonOptions common;

    ReplayRun(TraceOptions trace, ReplayOptions options, Path plot, CommonOptions common) {
        this.trace = trace;
        this.options = options;
        this.plot = plot;
        this.common = common;
    }

    /** Runs it; the exit code. */
    int run() {
        options.checkStore();
        ChildOptions child = options.child(trace);
        Workload workload = child.workload();
        Replay.Restart restart = options.restart();
        if (restart != Replay.Restart.NONE && workload.requests() < 2) {
            throw options.bad(trace.file + " has one request; give a trace of at least 2, one for each side of"
                    + " --restart-at");
        }
        try (ReplayFolders folders = ReplayFolders.of(options.data, "orbitkv-replay-")) {
            child.data = folders.paths();
            Replay replay = new Replay(child, workload, restart, restartAfter(workload.requests()));
            replay.run();
            draw(replay, child);
            ReplayReport report = new ReplayReport(replay, options);
            report.print(common.text(), plot);
            common.print(report.json(plot));
            String problems = Problems.of(replay, options.capBytes);
            if (!problems.isEmpty()) {
                throw new OrbitKvException(ErrorCode.FOUND_PROBLEMS, problems + "; " + folders.keep());
            }
            return 0;
        }
    }

    private int restartAfter(int requests) {
        double at = options.restartAt == null ? 1 : options.restartAt;
        return (int) Math.max(1, Math.min(requests - 1, Math.round(requests * at)));
    }

    private void draw(Replay replay, ChildOptions child) {
        if (plot != null) {
            String title = "OrbitKV replay: hits and latencies"
                    + (replay.restart == Replay.Restart.KILL ? " before and after kill -9" : "");
            PlotFile.write(
                    plot,
                    ReplayPlot.svg(
                            replay.series,
                            title,
                            ReplayPlot.what(trace.file.getFileName().toString(), replay.series, child),
                            replay.restart == Replay.Restart.KILL ? "kill -9, restart" : "restart"));
        }
    }
}
