package io.orbitkv.kit;

import io.orbitkv.nativeio.MemoryPurpose;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * What this process holds of the machine, noted at one moment: open descriptors by name, and native bytes by purpose.
 *
 * <pre>
 * LeakCheck before = LeakCheck.take();
 * openUseAndClose();
 * before.assertNothingLeaked();
 * </pre>
 *
 * <p>Take it after a first round of the same work, for a JVM opens files of its own when it loads classes.
 */
public final class LeakCheck {
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

    private final List<String> descriptors;
    private final Map<MemoryPurpose, Long> bytes;

    private LeakCheck(List<String> descriptors, Map<MemoryPurpose, Long> bytes) {
        this.descriptors = descriptors;
        this.bytes = bytes;
    }

    /** Notes what is held now. */
    public static LeakCheck take() {
        Map<MemoryPurpose, Long> bytes = new EnumMap<>(MemoryPurpose.class);
        for (MemoryPurpose purpose : MemoryPurpose.values()) {
            bytes.put(purpose, purpose.bytes());
        }
        return new LeakCheck(openDescriptors(), bytes);
    }

    /** How many descriptors were open. */
    public int descriptors() {
        return descriptors.size();
    }

    /** Native bytes that were held for a purpose. */
    public long bytes(MemoryPurpose purpose) {
        return bytes.get(purpose);
    }

    /**
     * Compares with what is held now; more of anything is a leak, less is not.
     *
     * @throws AssertionError naming each descriptor and purpose that grew
     */
    public void assertNothingLeaked() {
        LeakCheck now = take();
        List<String> leaks = new ArrayList<>();
        List<String> added = new ArrayList<>(now.descriptors);
        descriptors.forEach(added::remove);
        added.removeIf(LeakCheck::isOfTheJvm);
        added.forEach(name -> leaks.add("descriptor of " + name));
        now.bytes.forEach((purpose, held) -> {
            if (held > bytes.get(purpose)) {
                leaks.add((held - bytes.get(purpose)) + " native bytes of " + purpose);
            }
        });
        if (!leaks.isEmpty()) {
            throw new AssertionError("leaked since the check was taken: " + String.join(", ", leaks));
        }
    }

    /**
     * Jars and the module image are opened by class loading, random devices and ffi files by SecureRandom and JNA, once
     * each; the JVM looks into /sys and /proc for the limits of its container, a moment at a time.
     */
    private static boolean isOfTheJvm(String name) {
        return name.startsWith("/sys/")
                || name.startsWith("/proc/")
                || name.endsWith(".jar")
                || name.endsWith("/lib/modules")
                || name.endsWith("/dev/random")
                || name.endsWith("/dev/urandom")
                || (name.contains("/ffi") && name.endsWith(" (deleted)"));
    }

    private static List<String> openDescriptors() {
        List<String> names = new ArrayList<>();
        try (DirectoryStream<Path> open = Files.newDirectoryStream(DESCRIPTORS)) {
            for (Path descriptor : open) {
                try {
                    names.add(withoutNumber(Files.readSymbolicLink(descriptor).toString()));
                } catch (IOException e) {
                    continue; // the descriptor of this very listing, or one that another thread has just closed
                }
            }
        } catch (IOException e) {
            throw new AssertionError("cannot list " + DESCRIPTORS, e);
        }
        names.removeIf(name -> name.startsWith("/proc/") && name.endsWith("/fd"));
        Collections.sort(names);
        return names;
    }

    /** Sockets and pipes are named by a number that is new each time: {@code socket:[4711]}. */
    private static String withoutNumber(String name) {
        int bracket = name.indexOf(":[");
        return bracket < 0 || name.startsWith("anon_inode") ? name : name.substring(0, bracket);
    }
}
