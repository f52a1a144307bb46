package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;

/**
 * SIGTERM and SIGINT: the first asks for a clean stop, so that the exit code is ours to choose; the second ends the process
 * at once, which is safe and leaves recovery to the next start.
 *
 * <p>The only Java way to hear of signals is outside of the platform's API, so it is looked up rather than compiled against.
 */
final class StopSignals {
    private static final int KILLED = 128 + 15;

    private final CountDownLatch asked = new CountDownLatch(1);

    StopSignals() {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Object ours = Proxy.newProxyInstance(
                    StopSignals.class.getClassLoader(), new Class<?>[] {handler}, (proxy, method, arguments) -> {
                        if (method.getName().equals("handle")) {
                            heard();
                        }
                        return null;
                    });
            Method handle = signal.getMethod("handle", signal, handler);
            for (String name : new String[] {"TERM", "INT"}) {
                handle.invoke(null, signal.getConstructor(String.class).newInstance(name), ours);
            }
        } catch (ReflectiveOperationException e) {
            throw new OrbitKvException(ErrorCode.NOT_AVAILABLE, "this Java runtime can't be told of signals", e);
        }
    }

    private void heard() {
        if (asked.getCount() == 0) {
            System.err.println("stopped at once; the next start recovers");
            Runtime.getRuntime().halt(KILLED);
        }
        asked.countDown();
    }

    /** Waits for the first of them. */
    void await() throws InterruptedException {
        asked.await();
    }
}
