package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
        Workload workload = options.workload();
        if (workload.requests() < 2) {
            throw options.bad(
                    options.trace + " has one request; give a trace of at least 2, one for each side of the kill");
        }
        int killAfter = (int) Math.max(1, Math.min(workload.requests() - 1, Math.round(workload.requests() * killAt)));
        Path plotFile = plot != null ? plot : TemporaryFolders.root().resolve("orbitkv-demo.svg");
        requireWritable(plotFile);
        boolean keep = options.data != null;
        List<Path> folders = keep ? options.data : List.of(TemporaryFolders.create("orbitkv-demo-"));
        Thread interrupted = new Thread(() -> removeAfterChildren(folders), "demo-remove-folder");
        if (!keep) {
            Runtime.getRuntime().addShutdownHook(interrupted);
        }
        try {
            Demo demo = new Demo(options, folders, workload, killAfter);
            demo.run();
            DemoReport report = new DemoReport(demo, options, plotFile);
            write(plotFile, DemoPlot.svg(demo.series, options));
            report.print(common.text());
            common.print(report.json());
            if (!report.problems().isEmpty()) {
                keep = true;
                throw new OrbitKvException(
                        ErrorCode.FOUND_PROBLEMS,
                        report.problems() + "; the data folder " + DataPaths.text(folders)
                                + " is kept: look at it with 'orbitkv verify " + DataPaths.arguments(folders) + "'");
            }
            return 0;
        } finally {
            if (options.data == null) {
                endOfTemporary(folders, keep, interrupted);
            }
        }
    }

    /** Finds out before the run that the plot could not be written after it. */
    private void requireWritable(Path file) {
        Path parent = file.toAbsolutePath().getParent();
        if (Files.isDirectory(file) || !Files.isDirectory(parent) || !Files.isWritable(parent)) {
            throw options.bad("cannot write the plot to " + file + " given with --plot; name a file in a folder that"
                    + " exists and can be written");
        }
    }

    private static void write(Path file, String text) {
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot write the plot to " + file + ": " + e + "; see --plot", e);
        }
    }

    /** A child that still opens its store would make the folder anew. */
    private static void removeAfterChildren(List<Path> folders) {
        ChildJvm.endAll();
        folders.forEach(TemporaryFolders::delete);
    }

    private static void endOfTemporary(List<Path> folders, boolean keep, Thread hook) {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException e) {
            return; // the JVM is ending already, and the hook does it
        }
        if (!keep) {
            folders.forEach(TemporaryFolders::delete);
        }
    }
}
