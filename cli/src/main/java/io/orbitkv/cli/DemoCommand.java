package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv demo}: chats or a trace against a store whose process is killed on the way. */
@Command(
        name = "demo",
        sortOptions = false,
        description = {
            "Runs multi-turn chats, or a trace, against a store in a child process, kills that process with SIGKILL on"
                    + " the way, starts another one on the same folder and goes on.",
            "Every request queries its prefix, restores what is there and saves the rest, as an engine would. Every"
                    + " restored byte is compared with what was saved. Afterwards every block that the killed process"
                    + " had acknowledged as written must be there, unless its segment was put to another use since.",
            "Exit code 1 when a byte was wrong, a written block was lost, the folder grew past its cap, or fewer bytes"
                    + " were read from the drive than its hits have."
        })
final class DemoCommand implements Callable<Integer> {
    @Mixin
    private DemoOptions options;

    @Option(
            names = "--kill-at",
            paramLabel = "<fraction>",
            defaultValue = "0.5",
            description = "When to kill the first process, as a fraction of all requests between 0 and 1."
                    + " Default: ${DEFAULT-VALUE}.")
    private double killAt;

    @Option(
            names = "--plot",
            paramLabel = "<file>",
            description = "Where to write the plot (SVG): hit rate by tier and latencies over the requests."
                    + " Default: orbitkv-demo.svg in the folder for temporary files.")
    private Path plot;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        options.check();
        if (!(killAt > 0 && killAt < 1)) {
            throw options.bad("--kill-at is " + killAt + "; give a fraction between 0 and 1, for example 0.5");
        }
        Path plotFile = plot != null ? plot : TemporaryFolders.root().resolve("orbitkv-demo.svg");
        PlotFile.requireWritable(plotFile);
        ChildOptions child = options.child();
        Workload workload = child.workload();
        if (workload.requests() < 2) {
            throw options.bad(
                    options.trace + " has one request; give a trace of at least 2, one for each side of the kill");
        }
        int killAfter = (int) Math.max(1, Math.min(workload.requests() - 1, Math.round(workload.requests() * killAt)));
        try (ReplayFolders folders = ReplayFolders.of(options.data, "orbitkv-demo-")) {
            child.data = folders.paths();
            Replay replay = new Replay(child, workload, Replay.Restart.KILL, killAfter);
            replay.run();
            DemoReport report = new DemoReport(replay, options, plotFile);
            String requests =
                    options.trace == null ? "generated chats, seed " + options.seed : options.trace.getFileName() + "";
            PlotFile.write(
                    plotFile,
                    ReplayPlot.svg(
                            replay.series,
                            "OrbitKV demo: hits before and after kill -9",
                            ReplayPlot.what(requests, replay.series, child),
                            "kill -9, restart"));
            report.print(common.text());
            common.print(report.json());
            String problems = Problems.of(replay, options.capBytes);
            if (!problems.isEmpty()) {
                throw new OrbitKvException(ErrorCode.FOUND_PROBLEMS, problems + "; " + folders.keep());
            }
            return 0;
        }
    }
}
