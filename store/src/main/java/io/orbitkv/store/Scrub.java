package io.orbitkv.store;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.NanoClock;

/**
 * Looks for rot before a restore meets it: reads host memory and the drive again, each at its own rate, pass after pass.
 * An agent; it never says that it has done something, so that whoever runs it sleeps between two steps.
 */
final class Scrub implements Agent, AutoCloseable {
    /** Bytes of one step of each tier: after these the thread looks whether it is to stop. */
    private static final long STEP_BYTES_MAX = 16 << 20;

    private final HostScrub host;
    private final DriveScrub drive;
    private final ScrubPace hostPace;
    private final ScrubPace drivePace;
    private final NanoClock clock;

    Scrub(HostScrub host, DriveScrub drive, StoreOptions options, NanoClock clock) {
        this.host = host;
        this.drive = drive;
        this.clock = clock;
        this.hostPace = new ScrubPace(options.scrubHostBytesPerSecond(), clock.nanoTime());
        this.drivePace = new ScrubPace(options.scrubDriveBytesPerSecond(), clock.nanoTime());
    }

    @Override
    public String roleName() {
        return "orbitkv-scrub";
    }

    @Override
    public int doWork() {
        work(hostPace, host::step, host.passes);
        work(drivePace, drive::step, drive.passes);
        return 0;
    }

    private void work(ScrubPace pace, LongSupplier step, AtomicLong passes) {
        long done = 0;
        while (done < STEP_BYTES_MAX && pace.mayRead(clock.nanoTime())) {
            long before = passes.get();
            long bytes = step.getAsLong();
            pace.read(bytes);
            done += bytes;
            if (passes.get() != before) {
                pace.passEnded();
            }
        }
    }

    ScrubStats stats() {
        return new ScrubStats(
                host.bytes.get(),
                host.found.get(),
                host.passes.get(),
                host.progress(),
                drive.bytes.get(),
                drive.found.get(),
                drive.passes.get(),
                drive.progress(),
                drive.footersFound.get(),
                drive.readErrors.get());
    }

    /** Frees what it reads into; nobody steps it any more. */
    @Override
    public void close() {
        drive.close();
    }
}
