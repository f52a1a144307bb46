package io.orbitkv.cli;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.FamilyFile;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Level;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.store.SyncOutcome;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code orbitkv import}: takes the blocks of an exported family into a store. */
@Command(
        name = "import",
        sortOptions = false,
        description = {
            "Takes the blocks of a file that 'orbitkv export' wrote into a store, which may have other sizes. Every block is"
                    + " checked before; one that is there already stays as it is. Can be repeated after it was ended.",
            "The store must not be open elsewhere. Exit code 1 when blocks were wrong or did not find room."
        })
final class ImportCommand implements Callable<Integer> {
    private static final long CAP_BYTES_DEFAULT = 1L << 30;
    private static final long SYNC_MILLIS = 60_000;
    private static final int BUFFER_BYTES = 1 << 20;

    @Spec
    private CommandSpec spec;

    @Mixin
    private StoreFolders at;

    @Option(
            names = "--family",
            paramLabel = "<id>",
            description =
                    "Refuse a file of another family than the one whose id begins with these digits. Default: any.")
    private String family;

    @Option(
            names = "--pool-size",
            paramLabel = "<size>",
            defaultValue = "64mb",
            converter = Sizes.class,
            description = "Bytes of host memory that hold blocks meanwhile. Default: ${DEFAULT-VALUE}.")
    private long poolBytes;

    @Option(
            names = {"--cap", "--ssd-cache-capacity"},
            paramLabel = "<size>",
            converter = Sizes.class,
            description =
                    "Bytes that the data folders may take on their drives in all. Default: what a store there was made"
                            + " with, 1gb for a new one.")
    private Long capBytes;

    @Parameters(paramLabel = "<file>", description = "The file to import.")
    private Path file;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() throws IOException {
        common.apply();
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            throw new ParameterException(
                    spec.commandLine(), "cannot read " + file + "; name a file that exists and is readable");
        }
        try (InputStream in = new BufferedInputStream(Files.newInputStream(file), BUFFER_BYTES)) {
            FamilyFile.Reader reader = new FamilyFile.Reader(in, file.toString());
            requireFamily(reader.family());
            try (KvStore store = KvStore.open(StoreOptions.inFolders(at.data)
                    .poolBytes(poolBytes)
                    .capBytes(cap())
                    .blockBytesLargest(reader.family().blockBytes()))) {
                store.awaitWhole(Long.MAX_VALUE); // what is there already is not to be saved again
                return take(store, reader);
            }
        }
    }

    private void requireFamily(Family held) {
        String id = HexFormat.of().formatHex(held.id());
        if (family != null && !id.startsWith(family.toLowerCase(Locale.ROOT))) {
            throw new OrbitKvException(
                    ErrorCode.BAD_FAMILY,
                    file + " holds " + held + " with id " + id + ", not one whose id begins with " + family
                            + "; its blocks would have another layout than is wanted. Nothing was imported");
        }
    }

    private long cap() {
        if (capBytes != null) {
            return capBytes;
        }
        return DataPaths.holdStore(at.data) ? 0 : CAP_BYTES_DEFAULT;
    }

    private int take(KvStore store, FamilyFile.Reader reader) {
        ImportedBlocks imported = new ImportedBlocks(store, reader.family());
        Terminal terminal = Terminal.onStderr();
        OrbitKvException broken = null;
        try {
            for (FamilyFile.Block block = reader.next(); block != null; block = reader.next()) {
                imported.take(block);
                if (terminal.isDue()) {
                    terminal.show(String.format(Locale.ROOT, "importing: %,d blocks", imported.blocks()));
                }
            }
        } catch (OrbitKvException e) {
            broken = e; // what came before it is whole: it stays, and is counted
        }
        terminal.clear();
        boolean durable = store.sync(store.acceptedPosition(), Level.DURABLE, SYNC_MILLIS) == SyncOutcome.REACHED;
        common.text()
                .println(reader.family() + ": " + imported.imported() + " blocks imported, " + imported.present()
                        + " were there, " + imported.dropped() + " dropped, " + imported.wrong() + " wrong; "
                        + (durable ? "all durable" : "NOT durable"));
        common.print(new Json()
                .put("file", file.toString())
                .put("family", HexFormat.of().formatHex(reader.family().id()))
                .put("imported_blocks", imported.imported())
                .put("present_blocks", imported.present())
                .put("dropped_blocks", imported.dropped())
                .put("wrong_blocks", imported.wrong())
                .put("whole_file", broken == null)
                .put("durable", durable));
        if (broken != null) {
            throw broken;
        }
        if (imported.dropped() + imported.wrong() > 0 || !durable) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    imported.dropped() + " blocks found no room and " + imported.wrong() + " have wrong bytes"
                            + (durable ? "" : ", and the drive did not flush in time")
                            + "; give a larger --pool-size, or export again");
        }
        return 0;
    }
}
