package io.orbitkv.index;

/**
 * Where a block stands in the index: a run and an offset in it, packed into one {@code long}.
 *
 * <pre>
 *  63                     8 7       6 5        0
 * +------------------------+---------+----------+
 * | first unit of the run  | class   | offset   |
 * +------------------------+---------+----------+
 * </pre>
 *
 * <p>The class stands in here so that a reader knows how the run is laid out, and whether the memory still belongs to
 * a run of that class, before it reads the run. A run itself is named by its place with offset 0.
 */
final class Place {
    /** No place; every other value is at least 0. */
    static final long NONE = -1;

    private static final int UNIT_SHIFT = 8;
    private static final int CLASS_SHIFT = 6;
    private static final int OFFSET_MASK = 63;

    private Place() {}

    static long run(long unit, int sizeClass) {
        return unit << UNIT_SHIFT | (long) sizeClass << CLASS_SHIFT;
    }

    static long unit(long place) {
        return place >>> UNIT_SHIFT;
    }

    static int sizeClass(long place) {
        return (int) (place >>> CLASS_SHIFT) & 3;
    }

    static int offset(long place) {
        return (int) place & OFFSET_MASK;
    }

    static long runOf(long place) {
        return place & ~OFFSET_MASK;
    }
}
