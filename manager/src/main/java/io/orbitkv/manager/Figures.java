package io.orbitkv.manager;

import io.orbitkv.nativeio.Machine;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.store.StoreStats;
import java.util.List;
import java.util.function.ToDoubleFunction;

/** Every number that the manager tells: over HTTP, to Prometheus and to clients, under one name. */
final class Figures {
    /** How a number behaves. */
    enum Kind {
        /** Only grows. */
        COUNTER,
        /** Goes up and down. */
        GAUGE
    }

    /** The manager and its store at one moment. */
    record Moment(Manager manager, StoreStats store) {}

    /**
     * One number.
     *
     * @param name in snake case, its unit in it; Prometheus sees {@code orbitkv_} before it
     * @param kind how it behaves
     * @param meaning for people
     * @param value reads it
     */
    record Figure(String name, Kind kind, String meaning, ToDoubleFunction<Moment> value) {}

    /** All of them. */
    static final List<Figure> ALL = List.of(
            gauge("sessions", "connections that were greeted or are about to be", m -> m.manager.sessions()),
            gauge(
                    "instances",
                    "engines that have a session",
                    m -> m.manager.leases().instances()),
            counter(
                    "sessions_accepted",
                    "connections taken",
                    m -> m.manager.counters().sessionsAccepted.sum()),
            counter(
                    "sessions_refused",
                    "connections of other users, or over the bound",
                    m -> m.manager.counters().sessionsRefused.sum()),
            counter(
                    "requests",
                    "messages answered",
                    m -> m.manager.counters().requests.sum()),
            counter(
                    "request_seconds",
                    "time spent on them",
                    m -> m.manager.counters().requestNanos.sum() / 1e9),
            counter(
                    "requests_refused",
                    "messages answered with an error",
                    m -> m.manager.counters().refusals()),
            counter(
                    "sessions_broken",
                    "connections ended for what can be no frame",
                    m -> m.manager.counters().badFrames.sum()),
            gauge(
                    "client_leases",
                    "leases that clients hold",
                    m -> m.manager.leases().held()),
            gauge(
                    "client_leased_bytes",
                    "bytes of blocks that they claim",
                    m -> m.manager.leases().leasedBytes()),
            counter(
                    "client_leases_refused",
                    "hits that became misses for want of budget",
                    m -> m.manager.leases().refused()),
            counter(
                    "client_restored_blocks",
                    "blocks that clients say they have",
                    m -> m.manager.counters().restoredByClients.sum()),
            counter(
                    "client_overtaken_blocks",
                    "blocks that clients found moved behind their copy",
                    m -> m.manager.counters().overtakenClients.sum()),
            gauge(
                    "prefetches_waiting",
                    "queries whose blocks are yet to come from a drive",
                    m -> m.manager.prefetcher().waiting()),
            counter(
                    "events_told",
                    "events of blocks; counted while somebody follows them",
                    m -> m.manager.events().told()),
            gauge(
                    "events_followed",
                    "1 while somebody has asked for events within a minute",
                    m -> m.manager.events().isFollowed() ? 1 : 0),
            gauge("requests_in_work", "messages that are being worked on; 0 once drained", m -> m.manager.working()),
            gauge("session_bytes", "memory of frames and staging", m -> MemoryPurpose.SESSION.bytes()),
            gauge(
                    "pool_bytes",
                    "host memory for blocks",
                    m -> m.manager.arena().pool().bytes()),
            gauge(
                    "usable_pool_bytes",
                    "bytes of it that may be used, which take memory as they fill",
                    m -> m.manager.store().usablePoolBytes()),
            gauge(
                    "former_pool_bytes",
                    "memory that pools of former managers take, since a process maps them",
                    m -> m.manager.pool().formerBytes()),
            gauge(
                    "former_pool_pid",
                    "a process that does; 0: none",
                    m -> m.manager.pool().formerPid()),
            gauge("resident_bytes", "memory that the process occupies", m -> Machine.residentBytes()),
            gauge("open_files", "descriptors that the process has", m -> Machine.openFiles()),
            counter("saved_blocks", "blocks taken in", m -> m.store.savedBlocks()),
            counter("saved_bytes", "their bytes", m -> m.store.savedBytes()),
            counter("present_blocks", "blocks given to save that were stored already", m -> m.store.presentBlocks()),
            counter("dropped_blocks", "blocks that save did not take in", m -> m.store.droppedBlocks()),
            counter("queries", "queries", m -> m.store.queries()),
            counter("queried_blocks", "keys asked for", m -> m.store.queriedBlocks()),
            counter("hit_host_blocks", "blocks found in host memory", m -> m.store.hitHostBlocks()),
            counter("hit_nvme_blocks", "blocks found on a drive only", m -> m.store.hitNvmeBlocks()),
            counter("restored_host_blocks", "blocks given out from host memory", m -> m.store.restoredHostBlocks()),
            counter("restored_nvme_blocks", "blocks given out from a drive", m -> m.store.restoredNvmeBlocks()),
            counter("missed_blocks", "leased blocks that were not there any more", m -> m.store.missedBlocks()),
            counter("corrupt_blocks", "blocks whose checksum failed; each is a miss", m -> m.store.corruptBlocks()),
            counter("read_errors", "reads that a drive answered with an error", m -> m.store.readErrors()),
            counter("drive_outages", "how often a drive went out of service", m -> m.store.driveOutages()),
            gauge("drives_out", "drives that are out of service now", m -> m.store.drivesOut()),
            counter("nvme_written_bytes", "bytes written to the drives", m -> m.store.nvmeWrittenBytes()),
            counter("nvme_read_bytes", "bytes read from the drives for restores", m -> m.store.nvmeReadBytes()),
            gauge(
                    "nvme_queued_blocks",
                    "blocks that wait for a drive; 0 once drained",
                    m -> m.store.nvmeQueuedBlocks()),
            gauge(
                    "accepted_position",
                    "position of the last block sent to the drives",
                    m -> m.store.acceptedPosition()),
            gauge("written_position", "up to where blocks survive a kill", m -> m.store.writtenPosition()),
            gauge("durable_position", "up to where blocks survive a power loss", m -> m.store.durablePosition()),
            gauge("index_blocks", "places in the index", m -> m.store.indexBlocks()),
            gauge("index_filled", "part of the index that is filled, 0 to 1", m -> m.store.filledShare()),
            gauge("leases", "leases that the store knows", m -> m.store.leasesHeld()),
            gauge("leased_bytes", "bytes that they claim", m -> m.store.leasedBytes()),
            gauge("own_bytes", "bytes that the store's files take", m -> m.store.ownBytes()),
            gauge("foreign_bytes", "bytes of other files in its folders", m -> m.store.foreignBytes()),
            gauge("cap_bytes", "most that both may take", m -> m.store.capBytes()));

    private Figures() {}

    private static Figure gauge(String name, String meaning, ToDoubleFunction<Moment> value) {
        return new Figure(name, Kind.GAUGE, meaning, value);
    }

    private static Figure counter(String name, String meaning, ToDoubleFunction<Moment> value) {
        return new Figure(name, Kind.COUNTER, meaning, value);
    }

    /** How the pool stands, as members of a JSON object. */
    static String poolJson(Manager manager) {
        PoolGrowth.Standing pool = manager.pool();
        return "\"pool_bytes\":" + manager.arena().pool().bytes() + ",\"usable_pool_bytes\":"
                + manager.store().usablePoolBytes() + ",\"pool_condition\":\"" + pool.condition()
                + "\",\"former_pool_bytes\":" + pool.formerBytes() + ",\"former_pool_pid\":" + pool.formerPid();
    }

    /** All of them as a JSON object. */
    static String json(Moment moment) {
        StringBuilder out = new StringBuilder(2048).append("{\"epoch\":\"");
        out.append(Long.toHexString(moment.manager.epoch())).append('"');
        out.append(",\"pool_condition\":\"")
                .append(moment.manager.pool().condition())
                .append('"');
        for (Figure figure : ALL) {
            double value = figure.value().applyAsDouble(moment);
            out.append(",\"").append(figure.name()).append("\":");
            if (value == Math.rint(value) && Math.abs(value) < 1e15) {
                out.append((long) value);
            } else {
                out.append(value);
            }
        }
        return out.append('}').toString();
    }
}
