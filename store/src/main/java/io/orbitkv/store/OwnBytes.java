package io.orbitkv.store;

import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/**
 * How the data folders stand to the cap. Looking walks them, so an answer serves for a while; and a drive may hang in it, so
 * where there is a thread for it, the one that keeps the cap, whoever asks waits for it a little and then takes the last answer.
 */
final class OwnBytes implements Agent {
    private static final long SERVES_NANOS = 1_000_000_000;

    /** What a look takes, and more. */
    private static final long WAIT_MILLIS = 100;

    /** The same where there is no answer yet. */
    private static final long FIRST_WAIT_MILLIS = 1_000;

    private final CapKeeper cap;
    private final NanoClock clock;

    // Guarded by this.
    private Runnable waker;
    private long lookedNanos;
    private CapState seen;

    /** Looks that were asked for, and those that were done when the last one began: further ones are still to come. */
    private long asked;

    private long answered;

    OwnBytes(CapKeeper cap, NanoClock clock) {
        this.cap = cap;
        this.clock = clock;
    }

    /** From now on a thread looks, which is woken by this, and looks at once; null: whoever asks looks. */
    synchronized void askWith(Runnable wakesLooker) {
        waker = wakesLooker;
        asked += wakesLooker != null ? 1 : 0;
    }

    /** As of at most a second ago, or of when a drive last answered. */
    CapState now() {
        synchronized (this) {
            if (seen != null && clock.nanoTime() - lookedNanos <= SERVES_NANOS) {
                return seen;
            }
            if (waker != null) {
                boolean hopeless = seen != null && asked > answered; // somebody waits already, and may wait long
                return hopeless ? seen : ask(seen == null ? FIRST_WAIT_MILLIS : WAIT_MILLIS);
            }
        }
        return look();
    }

    /** As of now, unless a drive takes longer to answer than that. */
    CapState fresh(long waitMillis) {
        synchronized (this) {
            if (waker != null) {
                return ask(waitMillis);
            }
        }
        return look();
    }

    private CapState ask(long waitMillis) {
        long mine = ++asked;
        waker.run();
        try {
            long until = System.nanoTime() + waitMillis * 1_000_000;
            for (long left = until - System.nanoTime(); answered < mine && left > 0; left = until - System.nanoTime()) {
                wait(left / 1_000_000 + 1);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return seen != null ? seen : new CapState(cap.capBytes(), 0, cap.foreignBytes(), cap.condition());
    }

    /** Keeps the cap, and looks when somebody has asked. */
    @Override
    public int doWork() {
        int work = cap.doWork();
        synchronized (this) {
            if (asked == answered) {
                return work;
            }
        }
        look();
        return work + 1;
    }

    private CapState look() {
        long upTo;
        synchronized (this) {
            upTo = asked;
        }
        CapState state = cap.measure();
        synchronized (this) {
            seen = state;
            lookedNanos = clock.nanoTime();
            answered = Math.max(answered, upTo);
            notifyAll();
        }
        return state;
    }

    @Override
    public String roleName() {
        return "orbitkv-cap";
    }
}
