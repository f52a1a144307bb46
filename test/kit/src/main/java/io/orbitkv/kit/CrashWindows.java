package io.orbitkv.kit;

import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.WindowProbe;
import java.util.EnumSet;
import java.util.Set;

/** Lets the simulated machine die at the edges of crash windows, and knows which were open when it died. */
final class CrashWindows implements WindowProbe {
    private final SimulatedDrive drive;
    private final int[] open = new int[CrashWindow.values().length];
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
            drive.step();
        }
    }

    /** Passes silently once the machine is dead: the store may leave its windows while it unwinds. */
    @Override
    public void leave(CrashWindow window) {
        synchronized (drive) {
            if (drive.isCrashed()) {
                return;
            }
            drive.step();
            open[window.ordinal()] = Math.max(0, open[window.ordinal()] - 1); // it may unwind after the next boot
        }
    }

    void crash() {
        openAtCrash.clear();
        for (CrashWindow window : CrashWindow.values()) {
            if (open[window.ordinal()] > 0) {
                openAtCrash.add(window);
            }
            open[window.ordinal()] = 0;
        }
    }

    Set<CrashWindow> openAtCrash() {
        return EnumSet.copyOf(openAtCrash);
    }
}
