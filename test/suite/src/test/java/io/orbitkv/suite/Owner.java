package io.orbitkv.suite;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** An {@link OwnerChild} that runs: read what it says, then kill it. */
final class Owner implements AutoCloseable {
    private static final int KILLED = 128 + 9;

    private final Process child;
    private final BufferedReader lines;
    private final Path log;

    Owner(Path work, String... arguments) throws IOException {
        log = work.resolve("owner.log");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        String flags = Runtime.version().feature() >= 24 ? "jvm.25" : "jvm.17";
        command.add("@" + Path.of(System.getProperty("orbitkv.root"), "bin", flags));
        command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), OwnerChild.class.getName()));
        command.addAll(List.of(arguments));
        child = new ProcessBuilder(command).redirectError(log.toFile()).start();
        lines = child.inputReader();
    }

    /** Lines up to one that is waited for. */
    List<String> readTo(String last) throws IOException {
        List<String> read = new ArrayList<>();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            if (line.equals(last)) {
                return read;
            }
            read.add(line);
        }
        throw new AssertionError("the owner ended: " + Files.readString(log));
    }

    boolean isAlive() {
        return child.isAlive();
    }

    /** SIGKILL, at once. */
    void kill() throws InterruptedException {
        child.toHandle().destroyForcibly();
        if (!child.waitFor(60, TimeUnit.SECONDS) || child.exitValue() != KILLED) {
            throw new AssertionError("the owner was not killed but ended by itself");
        }
    }

    @Override
    public void close() {
        child.destroyForcibly();
    }
}
