package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.PrintStream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/**
 * The entry of {@code bin/orbitkv}.
 *
 * <p>Exit codes: 0 good, 1 found problems, 2 usage, 3 environment, 4 a bug of OrbitKV. Errors go to stderr in one line
 * that starts with {@code orbitkv: OKV-nnn:}; a stack trace follows only for bugs.
 */
@Command(
        name = "orbitkv",
        description = "OrbitKV: a log-structured store for KV-cache blocks of language models.",
        versionProvider = Version.class,
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "COMMAND",
        subcommands = {
            DemoCommand.class,
            ManagerCommand.class,
            ReplayChild.class,
            RestartChild.class,
            ReplayCommand.class,
            PlanCommand.class,
            PutCommand.class,
            GetCommand.class,
            VerifyCommand.class,
            InspectCommand.class,
            ExplainCommand.class,
            RecoverCommand.class,
            MigrateCommand.class,
            ExportCommand.class,
            ImportCommand.class,
            DoctorCommand.class,
            BenchCommand.class
        },
        footerHeading = "%n",
        footer = {
            "Sizes are like 64kb, 128mb, 1gb: powers of 1024; a bare number is bytes.",
            "Exit codes: 0 good, 1 found problems, 2 usage, 3 environment, 4 a bug.",
            "'orbitkv COMMAND --help' lists the options of a command with units and defaults."
        })
public final class Main implements Runnable {
    @CommandLine.Spec
    private CommandLine.Model.CommandSpec spec;

    /** Runs one command and ends the process with its exit code. */
    public static void main(String[] args) {
        NativeLibraries.use(System.getProperty(NativeLibraries.FOLDER));
        int exitCode = commandLine().execute(args);
        System.out.flush();
        System.err.flush();
        System.exit(exitCode);
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setParameterExceptionHandler(Main::usage)
                .setExecutionExceptionHandler(Main::failure);
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given");
    }

    private static int usage(ParameterException e, String[] args) {
        CommandLine commandLine = e.getCommandLine();
        String message = e.getMessage() // picocli calls an option by its longest name
                .replace('\n', ' ')
                .replace("--ssd-cache-path", "--data (or --ssd-cache-path)")
                .replace("--ssd-cache-capacity", "--cap (or --ssd-cache-capacity)");
        System.err.println("orbitkv: " + ErrorCode.BAD_FLAG.label() + ": " + message + "; see '"
                + commandLine.getCommandSpec().qualifiedName() + " --help'");
        CommandLine.UnmatchedArgumentException.printSuggestions(e, commandLine.getErr());
        return ErrorCode.BAD_FLAG.category().exitCode();
    }

    private static int failure(Exception e, CommandLine commandLine, ParseResult parsed) {
        return report(e, System.err);
    }

    /** Says what went wrong; the exit code that goes with it. */
    static int report(Throwable e, PrintStream err) {
        if (e instanceof OrbitKvException known) {
            err.println("orbitkv: " + known.getMessage());
            if (known.code().category() == ErrorCode.Category.BUG) {
                known.printStackTrace(err);
            }
            return known.code().category().exitCode();
        }
        if (e instanceof OutOfMemoryError) {
            err.println("orbitkv: " + ErrorCode.OUT_OF_MEMORY.label() + ": the Java heap is full (" + e.getMessage()
                    + "); give it more with ORBITKV_JAVA_OPTS=-Xmx4g");
            return ErrorCode.OUT_OF_MEMORY.category().exitCode();
        }
        err.println("orbitkv: " + ErrorCode.BUG.label() + ": unexpected " + e + "; please report this");
        e.printStackTrace(err);
        return ErrorCode.BUG.category().exitCode();
    }
}
