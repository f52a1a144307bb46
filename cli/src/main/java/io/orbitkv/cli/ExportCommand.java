package io.orbitkv.cli;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.ExportResult;
import io.orbitkv.recovery.Inspection;
import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HexFormat;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code orbitkv export}: a family's blocks in one file. */
@Command(
        name = "export",
        sortOptions = false,
        description = {
            "Writes the blocks of one family, with its definition and checksums, to one file that 'orbitkv import' reads."
                    + " The file appears under its name when it is whole and flushed.",
            "Works beside a process that has the store open: it writes what is on the drive at that moment."
                    + " Exit code 1 when blocks had to be left out because their bytes are wrong."
        })
final class ExportCommand implements Callable<Integer> {
    private static final int BUFFER_BYTES = 1 << 20;

    @Spec
    private CommandSpec spec;

    @Mixin
    private StoreFolders at;

    @Option(
            names = "--family",
            required = true,
            paramLabel = "<id>",
            description = "The first digits of the family's id, as 'orbitkv inspect' shows it.")
    private String family;

    @Option(
            names = "--out",
            required = true,
            paramLabel = "<file>",
            description = "Where to write; replaced if it exists.")
    private Path out;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() throws IOException {
        common.apply();
        Path parent = out.toAbsolutePath().getParent();
        if (Files.isDirectory(out) || !Files.isDirectory(parent)) {
            throw new ParameterException(
                    spec.commandLine(),
                    "cannot write to " + out + " given with --out; name a file in a folder that exists");
        }
        try (GivenFolders given = new GivenFolders(at.data)) {
            Inspection inspection = Inspection.of(given.folders(), given.options());
            Family chosen = FamilyChoice.of(inspection.families(), family, spec);
            ExportResult result = write(inspection, chosen);
            given.clear();
            common.text().println(ViewText.moment(inspection.epoch(), inspection.atMillis(), inspection.owner()));
            common.text()
                    .println(chosen + ": " + result.blocks() + " blocks, " + Sizes.text(result.bytes()) + " written to "
                            + out + "; " + result.dropped() + " left out");
            Json json = new Json().put("data", DataPaths.text(at.data));
            common.print(ViewText.moment(json, inspection.epoch(), inspection.atMillis(), inspection.owner())
                    .put("family", HexFormat.of().formatHex(chosen.id()))
                    .put("out", out.toString())
                    .put("blocks", result.blocks())
                    .put("bytes", result.bytes())
                    .put("dropped_blocks", result.dropped()));
            if (result.dropped() > 0) {
                throw new OrbitKvException(
                        ErrorCode.FOUND_PROBLEMS,
                        result.dropped()
                                + " blocks have other bytes than were saved, or were replaced meanwhile, and are not in "
                                + out + "; see 'orbitkv verify'");
            }
            return 0;
        }
    }

    private ExportResult write(Inspection inspection, Family chosen) throws IOException {
        Path part = out.resolveSibling(out.getFileName() + ".part");
        boolean good = false;
        try (FileOutputStream file = new FileOutputStream(part.toFile())) {
            BufferedOutputStream buffered = new BufferedOutputStream(file, BUFFER_BYTES);
            ExportResult result = inspection.export(chosen, buffered);
            buffered.flush();
            file.getFD().sync();
            Files.move(part, out, StandardCopyOption.ATOMIC_MOVE);
            good = true;
            return result;
        } catch (IOException e) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_UNUSABLE, "cannot write " + part + ": " + e + "; check room and permissions", e);
        } finally {
            if (!good) {
                Files.deleteIfExists(part);
            }
        }
    }
}
