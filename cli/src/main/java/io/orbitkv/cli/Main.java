package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.KvStore;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
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
        footerHeading = "%n",
        footer = {
            "Sizes are like 64kb, 128mb, 1gb: powers of 1024; a bare number is bytes.",
            "Exit codes: 0 good, 1 found problems, 2 usage, 3 environment, 4 a bug.",
            "'orbitkv COMMAND --help' lists the options of a command with units and defaults."
        })
public final class Main implements Runnable {
    /** By name, in the order of the usage message. */
    private static final Map<String, Class<?>> COMMANDS = new LinkedHashMap<>();

    static {
        COMMANDS.put("demo", DemoCommand.class);
        COMMANDS.put("manager", ManagerCommand.class);
        COMMANDS.put("replay-child", ReplayChild.class);
        COMMANDS.put("restart-child", RestartChild.class);
        COMMANDS.put("rehearse", RehearsalCommand.class);
        COMMANDS.put("replay", ReplayCommand.class);
        COMMANDS.put("plan", PlanCommand.class);
        COMMANDS.put("put", PutCommand.class);
        COMMANDS.put("get", GetCommand.class);
        COMMANDS.put("verify", VerifyCommand.class);
        COMMANDS.put("inspect", InspectCommand.class);
        COMMANDS.put("explain", ExplainCommand.class);
        COMMANDS.put("recover", RecoverCommand.class);
        COMMANDS.put("migrate", MigrateCommand.class);
        COMMANDS.put("export", ExportCommand.class);
        COMMANDS.put("import", ImportCommand.class);
        COMMANDS.put("doctor", DoctorCommand.class);
        COMMANDS.put("bench", BenchCommand.class);
    }

    /** Commands of which somebody waits for the store's first answer. */
    private static final Set<String> OPEN_A_STORE = Set.of("manager", "replay-child", "restart-child");

    @CommandLine.Spec
    private CommandLine.Model.CommandSpec spec;

    /** Runs one command and ends the process with its exit code. */
    public static void main(String[] args) {
        NativeLibraries.use(System.getProperty(NativeLibraries.FOLDER));
        if (args.length > 0 && OPEN_A_STORE.contains(args[0])) {
            KvStore.warmUp(); // while the options are read, which takes as long
        }
        int exitCode = commandLine(args).execute(args);
        System.out.flush();
        System.err.flush();
        System.exit(exitCode);
    }

    /** With the one command that the arguments begin with: to look at the options of all takes half a second. */
    static CommandLine commandLine(String... args) {
        CommandLine all = new CommandLine(new Main());
        Class<?> named = args.length == 0 ? null : COMMANDS.get(args[0]);
        if (named != null) {
            all.addSubcommand(args[0], named);
        } else {
            COMMANDS.forEach(all::addSubcommand);
        }
        return all.setCaseInsensitiveEnumValuesAllowed(true)
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
