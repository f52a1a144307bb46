package io.orbitkv.suite;

import io.orbitkv.kit.Fault;
import io.orbitkv.nativeio.CrashWindow;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** The command {@code test/seeds}: runs seeds of the simulation and prints what they did, or replays one. */
final class Seeds {
    private static final int EXIT_FAILED = 1;
    private static final int EXIT_USAGE = 2;
    private static final long PROGRESS_NANOS = 10_000_000_000L;
    private static final long LOOK_MILLIS = 200;
    private static final String USAGE = """
            test/seeds [--first N] [--count N] [--threads N] [--failures N] [--no-shrink] [--json]
                runs the seeds N to N + count - 1 (from 1, 1000 of them) of the simulation
            test/seeds --seed N [--faults A,B|none] [--lives N] [--operations N] [--clients N]
                replays one, or what is left of it, and prints what happened
            Exit code 1: a seed has failed; the command that replays it, made as small as possible, was printed.
            """;

    private long first = 1;
    private long count = 1000;
    private int threads = Runtime.getRuntime().availableProcessors();
    private int failuresMax = SeedRunner.FAILURES_MAX;
    private boolean shrinks = true;
    private boolean isJson;
    private SimulationCase replay;

    private Seeds() {}

    public static void main(String[] arguments) throws InterruptedException {
        Seeds seeds = new Seeds();
        try {
            seeds.read(arguments);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage() + "\n" + USAGE);
            System.exit(EXIT_USAGE);
        }
        System.exit(seeds.replay != null ? seeds.replay() : seeds.runAll());
    }

    private void read(String[] arguments) {
        for (int i = 0; i < arguments.length; i++) {
            String flag = arguments[i];
            switch (flag) {
                case "--json" -> isJson = true;
                case "--no-shrink" -> shrinks = false;
                case "--first",
                        "--count",
                        "--threads",
                        "--failures",
                        "--seed",
                        "--faults",
                        "--lives",
                        "--operations",
                        "--clients" -> {
                    if (++i == arguments.length) {
                        throw new IllegalArgumentException(flag + " needs a value");
                    }
                    set(flag, arguments[i]);
                }
                default -> throw new IllegalArgumentException("unknown flag " + flag);
            }
        }
    }

    private void set(String flag, String value) {
        switch (flag) {
            case "--first" -> first = Long.parseLong(value);
            case "--count" -> count = Long.parseLong(value);
            case "--threads" -> threads = Math.max(1, Integer.parseInt(value));
            case "--failures" -> failuresMax = Math.max(1, Integer.parseInt(value));
            case "--seed" -> replay = SimulationCase.of(Long.parseLong(value));
            case "--faults" -> replay = ofSeed(flag).withFaults(faults(value));
            case "--lives" -> replay = ofSeed(flag).withLives(Integer.parseInt(value));
            case "--operations" -> replay = ofSeed(flag).withOperations(Integer.parseInt(value));
            default -> replay = ofSeed(flag).withClients(Integer.parseInt(value));
        }
    }

    private SimulationCase ofSeed(String flag) {
        if (replay == null) {
            throw new IllegalArgumentException(flag + " comes behind --seed");
        }
        return replay;
    }

    private static Set<Fault> faults(String names) {
        EnumSet<Fault> faults = EnumSet.noneOf(Fault.class);
        if (!names.equals("none")) {
            for (String name : names.split(",", -1)) {
                faults.add(Fault.valueOf(name));
            }
        }
        return faults;
    }

    private int replay() {
        SeedOutcome outcome = SeedOutcome.run(replay);
        System.out.print(outcome.events());
        System.out.println(
                "mix: " + new FaultMix(replay) + "\ndrive: SHA-256 " + outcome.digest() + "\n" + outcome.totals());
        if (outcome.isGood()) {
            System.out.println("good");
            return 0;
        }
        System.out.println(outcome.history());
        outcome.failure().printStackTrace(System.out);
        return EXIT_FAILED;
    }

    private int runAll() throws InterruptedException {
        long start = System.nanoTime();
        SeedRunner runner = SeedRunner.ofRange(first, count, failuresMax);
        Thread running = new Thread(() -> runner.run(threads), "seeds");
        running.start();
        int named = 0;
        for (long said = start; running.isAlive(); running.join(LOOK_MILLIS)) {
            long now = System.nanoTime();
            for (List<SeedOutcome> failed = runner.failures(); named < failed.size(); named++) {
                System.err.println("failed: " + failed.get(named).of().command());
            }
            if (now - said >= PROGRESS_NANOS) {
                said = now;
                System.err.printf(
                        Locale.ROOT,
                        "%d of %d seeds, %.1f a second, %d failed%n",
                        runner.done(),
                        count,
                        runner.done() * 1e9 / (now - start),
                        runner.failures().size());
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        if (isJson) {
            printJson(runner, seconds);
        } else {
            print(runner, seconds);
        }
        for (SeedOutcome failed : runner.failures()) {
            say(shrinks ? Shrinker.shrink(failed) : failed);
        }
        if (runner.failures().size() < failuresMax && runner.done() < count) {
            System.err.println("only " + runner.done() + " of " + count + " seeds have run");
            return EXIT_FAILED;
        }
        return runner.failures().isEmpty() ? 0 : EXIT_FAILED;
    }

    private void say(SeedOutcome failed) {
        System.err.println("seed " + failed.of().seed() + ": " + failed.message() + "\n  replay: "
                + failed.of().command());
    }

    private void print(SeedRunner runner, double seconds) {
        SimulationTotals totals = runner.totals();
        System.out.printf(
                Locale.ROOT,
                "%d seeds from %d in %.1f s on %d threads: %.2f a second; wrong %d, lost %d, other failures %d%n",
                totals.runs,
                first,
                seconds,
                threads,
                totals.runs / seconds,
                totals.wrong,
                totals.lost,
                totals.otherFailures);
        System.out.printf("%-20s%12s%12s%n", "crash window", "entered", "died in");
        for (CrashWindow window : CrashWindow.values()) {
            System.out.printf(
                    "%-20s%12d%12d%n", window, totals.entered.getOrDefault(window, 0L), totals.diedIn(window));
        }
        System.out.printf("%-20s%12s%n", "fault", "injected");
        for (Fault fault : Fault.values()) {
            System.out.printf("%-20s%12d%n", fault, totals.faults.getOrDefault(fault, 0L));
        }
        System.out.println(totals);
    }

    private void printJson(SeedRunner runner, double seconds) {
        SimulationTotals totals = runner.totals();
        StringBuilder json = new StringBuilder("{\"seeds\":").append(totals.runs);
        json.append(",\"first\":").append(first).append(",\"threads\":").append(threads);
        json.append(String.format(
                Locale.ROOT, ",\"seconds\":%.3f,\"seedsPerSecond\":%.3f", seconds, totals.runs / seconds));
        json.append(",\"wrong\":").append(totals.wrong).append(",\"lost\":").append(totals.lost);
        json.append(",\"otherFailures\":").append(totals.otherFailures);
        json.append(",\"windowsEntered\":").append(json(totals.entered));
        json.append(",\"windowsDiedIn\":").append(json(totals.diedIn));
        json.append(",\"faults\":").append(json(totals.faults));
        json.append(",\"openings\":").append(json(totals.openings));
        json.append(",\"operations\":").append(totals.operations);
        json.append(",\"savedBlocks\":").append(totals.savedBlocks);
        json.append(",\"restoredBlocks\":").append(totals.restoredBlocks);
        json.append(",\"corruptBlocks\":").append(totals.corruptBlocks);
        json.append(",\"excusedLosses\":").append(totals.excusedLosses);
        json.append(",\"failedSeeds\":[");
        String separator = "";
        for (SeedOutcome failed : runner.failures()) {
            json.append(separator).append(failed.of().seed());
            separator = ",";
        }
        System.out.println(json.append("]}"));
    }

    private static String json(Map<?, Long> counts) {
        StringBuilder json = new StringBuilder("{");
        counts.forEach((key, value) -> json.append(json.length() > 1 ? "," : "")
                .append('"')
                .append(key)
                .append("\":")
                .append(value));
        return json.append('}').toString();
    }
}
