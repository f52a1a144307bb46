package io.orbitkv.nativeio;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Goal: the nearest limit of a control group counts, in both versions. Method: files as the kernel has them, written here. */
class ControlGroupsTest {
    private final TestFolder folder = new TestFolder();
    private final Path mounted = folder.path().resolve("cgroup");
    private final Path own = folder.path().resolve("own");
    private final ControlGroups groups = new ControlGroups(own, mounted);

    @AfterEach
    void removeFolder() {
        folder.close();
    }

    private void write(String file, String content) throws IOException {
        Path path = mounted.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, content + "\n");
    }

    private void group(String group, String limit, String current, String inactive) throws IOException {
        write(group + "memory.max", limit);
        write(group + "memory.current", current);
        write(group + "memory.stat", "anon 1\ninactive_file " + inactive + "\nactive_file 77");
    }

    @Test
    void theNearestLimitOfAllGroupsAboveCounts() throws IOException {
        Files.writeString(own, "0::/a/b\n");
        group("a/b/", "1000", "300", "0");
        assertEquals(700, groups.leftBytes());
        group("a/", "2000", "1500", "0");
        assertEquals(500, groups.leftBytes(), "the group above has less");
        group("a/", "2000", "1500", "400");
        assertEquals(700, groups.leftBytes(), "cached pages give way");
        group("a/b/", "max", "300", "0");
        assertEquals(900, groups.leftBytes());
        group("a/", "1000", "1500", "0");
        assertEquals(0, groups.leftBytes(), "over its limit");
    }

    @Test
    void theFirstVersionHasNamesOfItsOwn() throws IOException {
        Files.writeString(own, "9:name=systemd:/\n4:cpu,memory:/box\n0::/\n");
        write("memory/box/memory.limit_in_bytes", "5000");
        write("memory/box/memory.usage_in_bytes", "1000");
        write("memory/box/memory.stat", "inactive_file 3\ntotal_inactive_file 50");
        write("memory/memory.limit_in_bytes", "9223372036854771712");
        write("memory/memory.usage_in_bytes", "100");
        assertEquals(4050, groups.leftBytes());
    }

    @Test
    void theMountedGroupCountsWhereTheOwnOneIsNotToBeSeen() throws IOException {
        Files.writeString(own, "0::/of/the/host\n");
        group("", "600", "100", "0");
        assertEquals(500, groups.leftBytes());
    }

    @Test
    void withoutGroupsThereIsNoLimit() throws IOException {
        assertEquals(Machine.UNLIMITED, groups.leftBytes());
        Files.writeString(own, "nonsense\n0::\n4:memory:/../../elsewhere\n");
        assertEquals(Machine.UNLIMITED, groups.leftBytes());
        assertTrue(Machine.headroomBytes() > 0 && Machine.headroomBytes() <= Machine.memoryBytes());
    }
}
