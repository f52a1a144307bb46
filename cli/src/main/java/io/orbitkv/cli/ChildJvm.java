package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A process that runs another command of this program with the same Java, flags and classes, speaks frames on its
 * stdout, and can be killed.
 *
 * <p>Its stderr is passed on and its last lines are kept for the message, should it end by itself.
 */
final class ChildJvm implements AutoCloseable {
    private static final int TAIL_LINES = 20;
    private static final int PIPE_BYTES = 1 << 16;
    private static final int END_SECONDS = 10;

    /** Where bin/orbitkv has classes in the JVM's form; not set where it has none. */
    private static final String ARCHIVE = "orbitkv.archive";

    /** Properties that a child shares with its parent. */
    private static final List<String> PASSED_ON = List.of("orbitkv.ring", NativeLibraries.FOLDER);

    private static boolean ending;

    private final Process process;
    private final DataInputStream frames;
    private final Thread errors;
    private final Deque<String> tail = new ArrayDeque<>();

    private ChildJvm(Process process) {
        this.process = process;
        frames = new DataInputStream(new BufferedInputStream(process.getInputStream(), PIPE_BYTES));
        errors = new Thread(this::passOnErrors, "child-stderr");
        errors.setDaemon(true);
        errors.start();
    }

    /** Starts a command of this program. */
    static ChildJvm start(List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("@" + flagFile(Runtime.version().feature() >= 24 ? "jvm.25" : "jvm.17"));
        command.add("@" + flagFile("jvm.process"));
        String archive = System.getProperty(ARCHIVE);
        if (archive != null) {
            String quiet = "-Xlog:cds=off,cds+dynamic=off,class+path=off"
                    + (Runtime.version().feature() < 25 ? "" : ",aot=off");
            command.addAll(List.of("-XX:SharedArchiveFile=" + archive, quiet));
        }
        command.add("-Dorbitkv.home=" + home());
        for (String name : PASSED_ON) {
            String value = System.getProperty(name);
            if (value != null) {
                command.add("-D" + name + "=" + value);
            }
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
        command.addAll(arguments);
        try {
            return new ChildJvm(launch(command));
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.CHILD_PROCESS,
                    "cannot start " + command.get(0) + ": " + e.getMessage() + "; is this Java whole?",
                    e);
        }
    }

    private static Process launch(List<String> command) throws IOException {
        synchronized (ChildJvm.class) {
            if (ending) {
                throw interrupted();
            }
            return new ProcessBuilder(command).start();
        }
    }

    /** Kills all children, waits until they are gone, and lets no more be started: for the end of this process. */
    static void endAll() {
        List<ProcessHandle> children;
        synchronized (ChildJvm.class) {
            ending = true;
            children = ProcessHandle.current().children().toList();
        }
        children.forEach(ProcessHandle::destroyForcibly);
        for (ProcessHandle child : children) {
            child.onExit()
                    .completeOnTimeout(child, END_SECONDS, TimeUnit.SECONDS)
                    .join();
        }
    }

    private static OrbitKvException interrupted() {
        return new OrbitKvException(ErrorCode.CHILD_PROCESS, "interrupted");
    }

    /** Flags as bin/orbitkv chooses them: those that this Java needs, or those of every process. */
    private static Path flagFile(String name) {
        Path file = Path.of(home(), "bin", name);
        if (!Files.isReadable(file)) {
            throw new OrbitKvException(
                    ErrorCode.NOT_AVAILABLE,
                    "no flags for child processes at " + file + "; start OrbitKV with bin/orbitkv");
        }
        return file;
    }

    private static String home() {
        return System.getProperty("orbitkv.home", System.getProperty("orbitkv.root", "."));
    }

    /** What it says on stdout. */
    DataInputStream frames() {
        return frames;
    }

    /** Its stdin. */
    OutputStream input() {
        return process.getOutputStream();
    }

    /** Kills it with SIGKILL; what it had put into the pipe before can still be read. */
    void kill() {
        process.toHandle().destroyForcibly(); // that of the process itself would close our ends of the pipes
    }

    /** Waits until it is gone, a bounded time; its exit code. */
    int await() {
        try {
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                throw new OrbitKvException(
                        ErrorCode.CHILD_PROCESS,
                        "the child process " + process.pid() + " did not end within 60 s;" + lastWords());
            }
            errors.join(1_000);
            return process.exitValue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new OrbitKvException(ErrorCode.CHILD_PROCESS, "interrupted while waiting for the child process", e);
        }
    }

    /** What to say when it has ended by itself. */
    OrbitKvException died(IOException cause) {
        int exitCode = await();
        synchronized (ChildJvm.class) {
            if (ending) {
                return interrupted();
            }
        }
        return new OrbitKvException(
                ErrorCode.CHILD_PROCESS,
                "the child process ended by itself with exit code " + exitCode
                        + (exitCode == 137 ? " (killed: is memory short?)" : "") + ";" + lastWords(),
                cause);
    }

    private String lastWords() {
        synchronized (tail) {
            return tail.isEmpty() ? " it said nothing" : " its last lines were:\n  " + String.join("\n  ", tail);
        }
    }

    private void passOnErrors() {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                System.err.println(line);
                synchronized (tail) {
                    if (tail.size() == TAIL_LINES) {
                        tail.removeFirst();
                    }
                    tail.addLast(line);
                }
            }
        } catch (IOException e) {
            // The pipe broke with the process: nothing more will be said.
        }
    }

    /** Kills it if it still runs. */
    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
