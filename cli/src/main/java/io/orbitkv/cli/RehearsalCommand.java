package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;

/**
 * Does once in a small way what takes time at a start, for the JVM to write down which classes that takes: {@code
 * bin/orbitkv} runs it behind a build, with {@code -XX:ArchiveClassesAtExit}. Later starts map that archive instead of
 * reading, checking and linking some thousand classes.
 */
@Command(
        name = "rehearse",
        hidden = true,
        description = "Internal: fills and opens a small store, and starts and stops a manager.")
final class RehearsalCommand implements Callable<Integer> {
    private static final int PROMPTS = 8;
    private static final int BLOCK_BYTES = 4096;
    private static final long POOL_BYTES = 32L << 20;
    private static final long CAP_BYTES = 64L << 20;

    @Override
    public Integer call() {
        Path folder = TemporaryFolders.create("orbitkv-rehearsal-");
        try {
            String data = "--data=" + folder.resolve("data");
            run("--fill", data);
            run(data);
            startAndStop(
                    data,
                    "--bootstrap-socket=" + folder.resolve("socket"),
                    "--pool-size=32mb",
                    "--http-addr=127.0.0.1:0");
            return 0;
        } finally {
            TemporaryFolders.delete(folder);
        }
    }

    private static void run(String... more) {
        List<String> arguments = new ArrayList<>(List.of(
                "restart-child",
                "--stop",
                "--cap=" + CAP_BYTES,
                "--pool=" + POOL_BYTES,
                "--block-bytes=" + BLOCK_BYTES,
                "--prompts=" + PROMPTS,
                "--launched=" + System.nanoTime()));
        arguments.addAll(List.of(more));
        int exitCode = Main.commandLine("restart-child").execute(arguments.toArray(new String[0]));
        if (exitCode != 0) {
            throw new OrbitKvException(ErrorCode.BUG, "the rehearsal's " + arguments + " ended with " + exitCode);
        }
    }

    private static void startAndStop(String... options) {
        List<String> arguments = new ArrayList<>(List.of("manager"));
        arguments.addAll(List.of(options));
        ManagerCommand manager = (ManagerCommand) Main.commandLine("manager")
                .parseArgs(arguments.toArray(new String[0]))
                .subcommand()
                .commandSpec()
                .userObject();
        manager.start().close();
    }
}
