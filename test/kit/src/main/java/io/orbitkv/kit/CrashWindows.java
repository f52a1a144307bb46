package io.orbitkv.kit;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.WindowProbe;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/** Lets the simulated machine die at the edges of crash windows, and knows which were open when it died. */
final class CrashWindows implements WindowProbe {
    /** Windows that are full of the drive's own operations: their edges need none. */
    private static final Set<CrashWindow> AROUND_IO = EnumSet.of(CrashWindow.REAPPEND, CrashWindow.SNAPSHOT_MARKER);

    private final SimulatedDrive drive;
    private final int[] open = new int[CrashWindow.values().length];
    private final long[] entered = new long[CrashWindow.values().length];
    private final EnumSet<CrashWindow> openAtCrash = EnumSet.noneOf(CrashWindow.class);

    CrashWindows(SimulatedDrive drive) {
        this.drive = drive;
    }

    @Override
    public void enter(CrashWindow window) {
        synchronized (drive) {
            if (drive.isCrashed()) {
                throw drive.crashError();
            }
            open[window.ordinal()]++;
            entered[window.ordinal()]++;
            if (!AROUND_IO.contains(window)) {
                drive.step();
            }
        }
    }

    /** Passes silently once the machine is dead: the store may leave its windows while it unwinds. */
    @Override
    public void leave(CrashWindow window) {
        synchronized (drive) {
            if (drive.isCrashed()) {
                return;
            }
            if (!AROUND_IO.contains(window)) {
                drive.step();
            }
            open[window.ordinal()] = Math.max(0, open[window.ordinal()] - 1); // it may unwind after the next boot
        }
    }

    void crash() {
        openAtCrash.clear();
        openAtCrash.addAll(open());
        forget();
    }

    /** The windows that are open now. */
    Set<CrashWindow> open() {
        EnumSet<CrashWindow> windows = EnumSet.noneOf(CrashWindow.class);
        for (CrashWindow window : CrashWindow.values()) {
            if (open[window.ordinal()] > 0) {
                windows.add(window);
            }
        }
        return windows;
    }

    /** Whoever was in a window is gone. */
    void forget() {
        Arrays.fill(open, 0);
    }

    Map<CrashWindow, Long> entered() {
        Map<CrashWindow, Long> all = new EnumMap<>(CrashWindow.class);
        for (CrashWindow window : CrashWindow.values()) {
            all.put(window, entered[window.ordinal()]);
        }
        return all;
    }

    Set<CrashWindow> openAtCrash() {
        return EnumSet.copyOf(openAtCrash);
    }
}
