package io.orbitkv.manager;

/** Events that were read from the log. Reused. One thread. */
final class EventsSeen implements EventLog.Reader {
    private final long[] sequences;
    private final EventLog.Kind[] kinds;
    private final byte[][] familyIds;
    private final byte[][] keys;
    private final int[] shards;
    private int count;

    EventsSeen(int max) {
        sequences = new long[max];
        kinds = new EventLog.Kind[max];
        familyIds = new byte[max][];
        keys = new byte[max][];
        shards = new int[max];
    }

    EventsSeen clear() {
        count = 0;
        return this;
    }

    @Override
    public void event(long sequence, EventLog.Kind kind, byte[] familyId, int shard, byte[] key) {
        sequences[count] = sequence;
        kinds[count] = kind;
        familyIds[count] = familyId;
        shards[count] = shard;
        keys[count] = key;
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

    byte[] key(int i) {
        return keys[i];
    }

    int shard(int i) {
        return shards[i];
    }
}
