package io.orbitkv.kit;

import java.util.concurrent.ConcurrentHashMap;

/**
 * Where the randomness of a test comes from: a fresh number, or the one given with {@code -Dorbitkv.seed=N} to replay
 * a failure. Each is printed with the command that replays it.
 */
public final class Seed {
    /** The system property that fixes the seed. */
    public static final String PROPERTY = "orbitkv.seed";

    private static final ConcurrentHashMap<Class<?>, Long> CHOSEN = new ConcurrentHashMap<>();

    private Seed() {}

    /**
     * The seed of a test class, printed to standard output when it is first asked for, and the same from then on.
     *
     * @param test the test class, which names module and test in the replay command
     * @return the seed given by the property, or a fresh one
     */
    public static long of(Class<?> test) {
        return CHOSEN.computeIfAbsent(test, Seed::choose);
    }

    private static Long choose(Class<?> test) {
        Long given = Long.getLong(PROPERTY);
        long seed = given != null ? given : Gen.mix(System.nanoTime() ^ Gen.mix(test.hashCode())) >>> 1;
        System.out.println(replay(test, seed));
        return seed;
    }

    /** Whether a seed was given: a test over many seeds then runs that one only. */
    public static boolean isGiven() {
        return Long.getLong(PROPERTY) != null;
    }

    /**
     * The seeds of a test that runs over many: {@code count} numbers from {@code first} on, or the given one alone.
     * Fixed numbers make a failure of the build repeatable without looking for its output.
     */
    public static long[] many(long first, int count) {
        Long given = Long.getLong(PROPERTY);
        if (given != null) {
            return new long[] {given};
        }
        long[] seeds = new long[count];
        for (int i = 0; i < count; i++) {
            seeds[i] = first + i;
        }
        return seeds;
    }

    /** One line that names a test, its seed, and the command to run it again. */
    public static String replay(Class<?> test, long seed) {
        return test.getSimpleName() + ": seed " + seed + "; replay: mvn test -Dtest=" + test.getSimpleName() + " -D"
                + PROPERTY + "=" + seed;
    }
}
