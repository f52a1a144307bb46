package io.orbitkv.nativeio;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * What the memory limits of the control groups that this process is in leave it. Each call looks again.
 *
 * <pre>
 * version 2   line 0::/path            under /sys/fs/cgroup         memory.max             memory.current
 * version 1   line N:...memory...:/path   under /sys/fs/cgroup/memory  memory.limit_in_bytes  memory.usage_in_bytes
 * </pre>
 *
 * <p>A limit of any group above counts as well. In a container the path may be one of the host's, which is not to be seen
 * there; the group that is mounted in its place is looked at then.
 */
final class ControlGroups {
    private static final String CONTROLLER = "memory";

    private final Path groupsOfProcess;
    private final Path mounted;

    ControlGroups(Path groupsOfProcess, Path mounted) {
        this.groupsOfProcess = groupsOfProcess;
        this.mounted = mounted;
    }

    static ControlGroups ofThisMachine() {
        return new ControlGroups(Path.of("/proc/self/cgroup"), Path.of("/sys/fs/cgroup"));
    }

    /** Names of the files of a version. */
    private enum Version {
        ONE("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "),
        TWO("memory.max", "memory.current", "inactive_file ");

        private final String limit;
        private final String use;
        private final String reclaimable;

        Version(String limit, String use, String reclaimable) {
            this.limit = limit;
            this.use = use;
            this.reclaimable = reclaimable;
        }
    }

    /** Bytes until the nearest limit, cached file pages that would give way left out; {@link Machine#UNLIMITED} without one. */
    long leftBytes() {
        long left = Machine.UNLIMITED;
        for (String line : lines(groupsOfProcess)) {
            String[] parts = line.split(":", 3);
            if (parts.length == 3 && parts[1].isEmpty()) {
                left = Math.min(left, left(Version.TWO, mounted, parts[2]));
            } else if (parts.length == 3 && List.of(parts[1].split(",", -1)).contains(CONTROLLER)) {
                left = Math.min(left, left(Version.ONE, mounted.resolve(CONTROLLER), parts[2]));
            }
        }
        return left;
    }

    /** The least that is left in a group and all above it. */
    private static long left(Version version, Path top, String path) {
        long left = Machine.UNLIMITED;
        Path group = top.resolve(path.substring(Math.min(1, path.length()))).normalize();
        for (; group != null && group.startsWith(top); group = group.getParent()) {
            left = Math.min(left, leftIn(version, group));
        }
        return left;
    }

    private static long leftIn(Version version, Path group) {
        long limit = number(group.resolve(version.limit));
        long use = number(group.resolve(version.use));
        if (limit < 0 || use < 0) {
            return Machine.UNLIMITED; // no limit, or not told
        }
        long reclaimable = 0;
        for (String line : lines(group.resolve("memory.stat"))) {
            if (line.startsWith(version.reclaimable)) {
                reclaimable = Math.max(0, parsed(line.substring(version.reclaimable.length())));
            }
        }
        return Math.max(0, limit - use + reclaimable);
    }

    private static long number(Path file) {
        List<String> lines = lines(file);
        return lines.isEmpty() ? -1 : parsed(lines.get(0));
    }

    private static long parsed(String text) {
        try {
            return Long.parseLong(text.trim());
        } catch (NumberFormatException e) {
            return -1; // "max"
        }
    }

    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file, StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return List.of();
        }
    }
}
