package io.orbitkv.manager;

/** Events that were read from the log. Reused. One thread. */
final class EventsSeen implements EventLog.Reader {
    private static final int KEY_LONGS = Wire.KEY_BYTES / Long.BYTES;

    private final long[] sequences;
    private final EventLog.Kind[] kinds;
    private final byte[][] familyIds;
    private final long[] keys;
    private final int[] shards;
    private int count;

    EventsSeen(int max) {
        sequences = new long[max];
        kinds = new EventLog.Kind[max];
        familyIds = new byte[max][];
        keys = new long[max * KEY_LONGS];
        shards = new int[max];
    }

    @Override
    public void begin() {
        count = 0;
    }

    @Override
    public void event(
            long sequence, EventLog.Kind kind, byte[] familyId, int shard, long key0, long key1, long key2, long key3) {
        sequences[count] = sequence;
        kinds[count] = kind;
        familyIds[count] = familyId;
        shards[count] = shard;
        int keyAt = count * KEY_LONGS;
        keys[keyAt] = key0;
        keys[keyAt + 1] = key1;
        keys[keyAt + 2] = key2;
        keys[keyAt + 3] = key3;
        count++;
    }

    int count() {
        return count;
    }

    long sequence(int i) {
        return sequences[i];
    }

    EventLog.Kind kind(int i) {
        return kinds[i];
    }

    byte[] familyId(int i) {
        return familyIds[i];
    }

    /** Byte {@code b} of the key. */
    short keyByte(int i, int b) {
        return Wire.keyByte(keys, i * KEY_LONGS, b);
    }

    int shard(int i) {
        return shards[i];
    }
}
