package io.orbitkv.cli;

import io.orbitkv.bench.FloorServer;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv bench floor}: what {@code python -m orbitkv.bench} compares itself with. */
@Command(
        name = "floor",
        hidden = true,
        description = "The other side of python -m orbitkv.bench: sends 64 bytes back, to one client.")
final class FloorCommand implements Runnable {
    @Option(
            names = "--socket",
            required = true,
            paramLabel = "<path>",
            description = "The Unix socket that it is served on; nothing may be there.")
    private Path socket;

    @Mixin
    private CommonOptions common;

    @Override
    public void run() {
        common.apply();
        FloorServer.serve(socket);
    }
}
