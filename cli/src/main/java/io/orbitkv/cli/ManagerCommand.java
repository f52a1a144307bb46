package io.orbitkv.cli;

import io.orbitkv.manager.Drained;
import io.orbitkv.manager.Manager;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code orbitkv manager}: the process that engines on this host share. */
@Command(
        name = "manager",
        sortOptions = false,
        description = {
            "Keeps blocks for the engines of this host: they connect to its socket and read host memory directly."
                    + " Ends at SIGTERM or SIGINT with exit code 0, once what was taken in is on the drives; a second"
                    + " signal ends it at once.",
            "Options can stand in a file, one or more a line: orbitkv manager @manager.conf"
        })
final class ManagerCommand implements Callable<Integer> {
    @Mixin
    private ManagerFlags flags;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() throws InterruptedException {
        common.apply();
        StopSignals signals = new StopSignals();
        long began = System.nanoTime();
        Manager manager = start();
        try (manager) {
            System.err.println("serving on " + flags.socket
                    + (manager.httpPort() < 0 ? "" : ", HTTP on port " + manager.httpPort()) + ", after "
                    + (System.nanoTime() - began) / 1_000_000 + " ms");
            common.print(new Json()
                    .put("socket", flags.socket.toString())
                    .put("http_port", manager.httpPort())
                    .put("epoch", Long.toHexString(manager.epoch())));
            System.out.flush();
            signals.await();
            System.err.println("stopping");
        }
        tell(manager.drained());
        return 0;
    }

    /** Starts the manager that the options ask for. */
    Manager start() {
        return Manager.start(flags.options());
    }

    private void tell(Drained left) {
        System.err.println("stopped, written up to " + left.writtenPosition() + " of " + left.acceptedPosition()
                + (left.queuedBlocks() == 0 ? "" : "; " + left.queuedBlocks() + " blocks were not written in time"));
        common.print(new Json()
                .put("requests_in_work", left.requestsInWork())
                .put("prefetches_waiting", left.prefetchesWaiting())
                .put("nvme_queued_blocks", left.queuedBlocks())
                .put("nvme_dropped_blocks", left.droppedBlocks())
                .put("accepted_position", left.acceptedPosition())
                .put("written_position", left.writtenPosition()));
    }
}
