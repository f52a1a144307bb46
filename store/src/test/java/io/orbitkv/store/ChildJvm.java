package io.orbitkv.store;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Starts a main class of the tests in a JVM of its own, with the flags of this one. */
final class ChildJvm {
    private ChildJvm() {}

    /** Reads what a child prints up to a line; logs may come before it. */
    static void awaitLine(Process child, String expected) throws IOException {
        for (String line = ""; !line.equals(expected); ) {
            line = child.inputReader().readLine();
            if (line == null) {
                throw new AssertionError("the child ended before it printed '" + expected + "'");
            }
        }
    }

    /** The same for a line of which the beginning is known. */
    static String awaitLineThatStarts(Process child, String expected) throws IOException {
        for (String line = child.inputReader().readLine();
                line != null;
                line = child.inputReader().readLine()) {
            if (line.startsWith(expected)) {
                return line;
            }
        }
        throw new AssertionError("the child ended before it printed '" + expected + "'");
    }

    static Process start(Class<?> main, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        for (String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (!flag.startsWith("-javaagent") && !flag.startsWith("-Xmx") && !flag.startsWith("-agentlib")) {
                command.add(flag);
            }
        }
        // The collector of bin/orbitkv: others have threads of their own, which an idle store would be blamed for.
        command.addAll(
                List.of("-XX:+UseSerialGC", "-Xmx128m", "-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(Arrays.asList(arguments));
        return new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
