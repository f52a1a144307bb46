package io.orbitkv.cli;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import java.io.PrintStream;
import org.slf4j.LoggerFactory;
import picocli.CommandLine.Option;

/** Options of every command. */
final class CommonOptions {
    /** Levels of the log on stderr. */
    enum LogLevel {
        ERROR,
        WARN,
        INFO,
        DEBUG
    }

    @Option(
            names = "--json",
            description = "Print one JSON object as the last line of stdout; everything else goes to stderr.")
    boolean json;

    @Option(
            names = "--log-level",
            paramLabel = "<level>",
            defaultValue = "WARN",
            description = "What to log on stderr: ${COMPLETION-CANDIDATES}. Default: ${DEFAULT-VALUE}.")
    LogLevel logLevel;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help.")
    boolean help;

    /** Sets the level of the log; call it first. */
    void apply() {
        ((Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME)).setLevel(Level.toLevel(logLevel.name()));
    }

    /** Where tables and sentences for people go. */
    PrintStream text() {
        return json ? System.err : System.out;
    }

    /** Prints the object where it was asked for. */
    void print(Json object) {
        System.err.flush();
        if (json) {
            System.out.println(object);
        }
    }
}
