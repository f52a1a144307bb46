package io.orbitkv.index;

import net.openhft.chronicle.core.values.LongValue;
import net.openhft.chronicle.map.ChronicleMap;
import net.openhft.chronicle.set.ChronicleSet;
import net.openhft.chronicle.values.Values;

/**
 * Makes maps and sets of longs in anonymous memory, the only door to Chronicle Map: the first one takes a second or
 * more, since it compiles classes; those after it some milliseconds.
 */
final class ChronicleMaps {
    /** Fewer keys than this fill their parts too unevenly to keep to a bound. */
    private static final long KEYS_MIN = 1024;

    /** How far a part may grow beyond its share; each key's part is chosen by its hash. */
    private static final double BLOAT_MAX = 4;

    static {
        // Before the first class of Chronicle: otherwise it reports to a web service, and greets on the console.
        setUnlessSet("chronicle.analytics.disable");
        setUnlessSet("chronicle.announcer.disable");
    }

    private static final ThreadLocal<LongValue> KEY = ThreadLocal.withInitial(ChronicleMaps::newLong);
    private static final ThreadLocal<LongValue> VALUE = ThreadLocal.withInitial(ChronicleMaps::newLong);

    private ChronicleMaps() {}

    private static void setUnlessSet(String property) {
        if (System.getProperty(property) == null) {
            System.setProperty(property, "true");
        }
    }

    private static LongValue newLong() {
        return Values.newHeapInstance(LongValue.class);
    }

    /** The calling thread's own key, set to a value: maps copy it, so it is free again after each call. */
    static LongValue key(long value) {
        LongValue key = KEY.get();
        key.setValue(value);
        return key;
    }

    /** The calling thread's own value, set to a value. */
    static LongValue value(long value) {
        LongValue held = VALUE.get();
        held.setValue(value);
        return held;
    }

    static ChronicleMap<LongValue, LongValue> map(long keysMax) {
        return ChronicleMap.of(LongValue.class, LongValue.class)
                .entries(Math.max(KEYS_MIN, keysMax))
                .maxBloatFactor(BLOAT_MAX)
                .create();
    }

    static ChronicleSet<LongValue> set(long keysMax) {
        return ChronicleSet.of(LongValue.class)
                .entries(Math.max(KEYS_MIN, keysMax))
                .maxBloatFactor(BLOAT_MAX)
                .create();
    }
}
