package io.orbitkv.manager;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.store.StoreOptions;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.Objects;

/** How a manager is started. Every setter checks its value, names its unit and returns this object. */
public final class ManagerOptions {
    private static final long MIB = 1L << 20;

    private final Path socket;
    private final StoreOptions store;
    private long stagingBytes = 64 * MIB;
    private int sessionsMax = 256;
    private int leasesMax = 1024;
    private long instanceLeaseBytesMax;
    private InetSocketAddress http;

    private ManagerOptions(Path socket, StoreOptions store) {
        this.socket = socket;
        this.store = store;
    }

    /**
     * Defaults for a manager.
     *
     * @param socket where clients find it
     * @param store what it keeps; its pool becomes shared
     * @return the options
     */
    public static ManagerOptions of(Path socket, StoreOptions store) {
        return new ManagerOptions(
                Objects.requireNonNull(socket, "socket"),
                Objects.requireNonNull(store, "store").sharedPool(true));
    }

    /** Where clients find the manager. */
    public Path socket() {
        return socket;
    }

    /** What it keeps. */
    public StoreOptions store() {
        return store;
    }

    /** Bytes that each session may use to hand blocks over, in both directions; 1 MiB to 64 GiB. */
    public ManagerOptions stagingBytes(long bytes) {
        stagingBytes = inRange("staging bytes", bytes, MIB, 64L << 30);
        return this;
    }

    /** See {@link #stagingBytes(long)}. */
    public long stagingBytes() {
        return stagingBytes;
    }

    /** Most sessions at once; 1 to 4096. A client has two. */
    public ManagerOptions sessionsMax(int sessions) {
        sessionsMax = (int) inRange("sessions", sessions, 1, 4096);
        return this;
    }

    /** See {@link #sessionsMax(int)}. */
    public int sessionsMax() {
        return sessionsMax;
    }

    /** Most leases, and queries that wait, of one session; 1 to 65,536. */
    public ManagerOptions leasesMax(int leases) {
        leasesMax = (int) inRange("leases of a session", leases, 1, 1 << 16);
        return this;
    }

    /** See {@link #leasesMax(int)}. */
    public int leasesMax() {
        return leasesMax;
    }

    /** Bytes of blocks that the leases of one instance may claim together; 0 (default): no bound beside the store's. */
    public ManagerOptions instanceLeaseBytesMax(long bytes) {
        instanceLeaseBytesMax = inRange("lease bytes of an instance", bytes, 0, Long.MAX_VALUE / 2);
        return this;
    }

    /** See {@link #instanceLeaseBytesMax(long)}. */
    public long instanceLeaseBytesMax() {
        return instanceLeaseBytesMax;
    }

    /** Where HTTP answers; null (default): nowhere. Port 0 takes any. */
    public ManagerOptions http(InetSocketAddress address) {
        http = address;
        return this;
    }

    /** See {@link #http(InetSocketAddress)}. */
    public InetSocketAddress http() {
        return http;
    }

    private static long inRange(String name, long value, long smallest, long largest) {
        if (value < smallest || value > largest) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT, name + " must be from " + smallest + " to " + largest + ", got " + value);
        }
        return value;
    }
}
