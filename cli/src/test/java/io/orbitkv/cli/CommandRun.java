package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A command line that was run in this process, with what it wrote. */
record CommandRun(int exitCode, String out, String err) {
    static synchronized CommandRun of(String... args) {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream caughtOut = new ByteArrayOutputStream();
        ByteArrayOutputStream caughtErr = new ByteArrayOutputStream();
        System.setOut(new PrintStream(caughtOut, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(caughtErr, true, StandardCharsets.UTF_8));
        try {
            int exitCode = Main.commandLine(args).execute(args);
            return new CommandRun(
                    exitCode, caughtOut.toString(StandardCharsets.UTF_8), caughtErr.toString(StandardCharsets.UTF_8));
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
    }

    String lastLine() {
        String[] lines = out.strip().split("\n", -1);
        return lines[lines.length - 1];
    }

    /** A number of the object on stdout: the first of its name. */
    double number(String key) {
        Matcher matcher = Pattern.compile("\"" + key + "\":(-?[0-9.]+)").matcher(out);
        assertTrue(matcher.find(), key + " in " + out);
        return Double.parseDouble(matcher.group(1));
    }
}
