package io.orbitkv.manager;

import io.orbitkv.nativeio.Machine;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Pools of former managers of this store that processes still map: a client that is stopped while its manager is killed keeps
 * the whole pool in memory. They are found by the name of their memfd in {@code /proc/<pid>/maps}, in processes that this one
 * may look at, which are those of its user.
 *
 * <p>All processes are looked at once, which takes some milliseconds for each hundred; then only those that hold a pool, until one
 * has let go. A pool without a manager gets no new holder but a child of one. One thread.
 */
final class FormerPools {
    private static final int PARTS = 6;
    private static final int PART_RANGE = 0;
    private static final int PART_INODE = 4;
    private static final int PART_NAME = 5;
    private static final int RADIX = 16;

    private final Path processes;
    private final String name;
    private final long ownInode;

    /** What is known, by inode. */
    private Map<Long, Held> pools = new TreeMap<>();

    private boolean searched;

    /**
     * Nothing is known before the first {@link #look}.
     *
     * @param processes where they are told of: {@code /proc}
     * @param name of the memfds
     * @param ownInode the pool that is this manager's own
     */
    FormerPools(Path processes, String name, long ownInode) {
        this.processes = processes;
        this.name = "/memfd:" + name + " ";
        this.ownInode = ownInode;
    }

    /**
     * A pool in the hands of a process.
     *
     * @param pid one that maps it
     * @param bytes of memory that it takes
     */
    record Held(long pid, long bytes) {}

    /** Looks who holds what now. */
    void look() {
        if (!searched || !areStillHeld()) {
            pools = search();
            searched = true;
        }
    }

    /** Bytes that all of them take together. */
    long bytes() {
        return pools.values().stream().mapToLong(Held::bytes).sum();
    }

    /** A process that holds the largest; 0 when there is none. */
    long pid() {
        Held largest = new Held(0, -1);
        for (Held pool : pools.values()) {
            largest = pool.bytes > largest.bytes ? pool : largest;
        }
        return largest.pid;
    }

    private boolean areStillHeld() {
        for (Map.Entry<Long, Held> pool : pools.entrySet()) {
            long pid = pool.getValue().pid;
            Long mapped = mappedBytes(pid).get(pool.getKey());
            if (mapped == null) {
                return false;
            }
            pool.setValue(new Held(pid, takenBytes(pid, pool.getKey(), mapped)));
        }
        return true;
    }

    private Map<Long, Held> search() {
        Map<Long, Held> found = new TreeMap<>();
        try (DirectoryStream<Path> all = Files.newDirectoryStream(processes, "[0-9]*")) {
            for (Path process : all) {
                long pid = Long.parseLong(process.getFileName().toString());
                mappedBytes(pid).forEach((inode, mapped) -> {
                    if (!found.containsKey(inode)) {
                        found.put(inode, new Held(pid, takenBytes(pid, inode, mapped)));
                    }
                });
            }
        } catch (IOException | DirectoryIteratorException e) {
            return found; // what could be read counts
        }
        return found;
    }

    /** Bytes that a process has mapped of pools that are not this manager's, by inode; none of one that tells nothing. */
    private Map<Long, Long> mappedBytes(long pid) {
        Map<Long, Long> mapped = new HashMap<>();
        try (Stream<String> lines = Files.lines(of(pid).resolve("maps"), StandardCharsets.ISO_8859_1)) {
            for (Iterator<String> each = lines.iterator(); each.hasNext(); ) {
                String line = each.next();
                String[] parts = line.contains(name) ? line.split(" +", PARTS) : new String[0];
                if (parts.length == PARTS && parts[PART_NAME].startsWith(name)) {
                    long inode = Long.parseLong(parts[PART_INODE]);
                    if (inode != ownInode) {
                        mapped.merge(inode, bytesOf(parts[PART_RANGE]), Long::sum);
                    }
                }
            }
        } catch (IOException | UncheckedIOException e) {
            return mapped; // it has ended, or is not to be looked at
        }
        return mapped;
    }

    private static long bytesOf(String range) {
        int dash = range.indexOf('-');
        return Long.parseUnsignedLong(range.substring(dash + 1), RADIX)
                - Long.parseUnsignedLong(range.substring(0, dash), RADIX);
    }

    /** A pool takes what was touched of it. That is told behind a descriptor; without one, all that is mapped counts. */
    private long takenBytes(long pid, long inode, long mappedBytes) {
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(of(pid).resolve("fd"))) {
            for (Path descriptor : descriptors) {
                if (isPool(descriptor) && inode(descriptor) == inode) {
                    long taken = Machine.takenBytes(descriptor);
                    return taken < 0 ? mappedBytes : taken;
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            return mappedBytes;
        }
        return mappedBytes;
    }

    private boolean isPool(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().startsWith(name);
        } catch (IOException e) {
            return false;
        }
    }

    /** The inode of a file, links of /proc to memory without a name included; -1 where it can't be told. */
    static long inode(Path file) {
        try {
            return (Long) Files.getAttribute(file, "unix:ino");
        } catch (IOException e) {
            return -1;
        }
    }

    private Path of(long pid) {
        return processes.resolve(Long.toString(pid));
    }
}
