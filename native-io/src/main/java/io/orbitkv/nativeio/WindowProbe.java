package io.orbitkv.nativeio;

/** Is told when work enters and leaves a {@link CrashWindow}. Calls come from any thread and must not block. */
public interface WindowProbe {
    /** Tells nobody. */
    WindowProbe NONE = new WindowProbe() {
        @Override
        public void enter(CrashWindow window) {}

        @Override
        public void leave(CrashWindow window) {}
    };

    /** Work in the window begins; may nest and overlap. */
    void enter(CrashWindow window);

    /** Work in the window has ended. */
    void leave(CrashWindow window);
}
