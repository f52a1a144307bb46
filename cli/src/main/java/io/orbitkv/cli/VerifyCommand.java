package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.Problem;
import io.orbitkv.recovery.Verify;
import io.orbitkv.recovery.VerifyReport;
import java.io.PrintStream;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code orbitkv verify}: reads a data folder and says what is wrong with it. */
@Command(
        name = "verify",
        sortOptions = false,
        description = {
            "Reads everything in a data folder (catalog, headers, batches, footers, the bytes of every block, the snapshot)"
                    + " and says what does not check out. Changes nothing without --repair.",
            "Exit code 1 when there is a problem that is not repaired. A store that is open may be read as well; what is being written"
                    + " meanwhile may then look wrong."
        })
final class VerifyCommand implements Callable<Integer> {
    @Mixin
    private StoreFolders at;

    @Option(
            names = "--repair",
            description =
                    "Put right what can be: wrong blocks go into quarantine, headers and footers are written again from"
                            + " what implies them. Says what it will do first; deletes nothing. Not while the store is open.")
    private boolean repair;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        VerifyReport report = verify();
        print(report);
        common.print(json(report));
        if (repair && report.isMended()) {
            return 0;
        }
        if (!report.isClean()) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    report.problemsFound() + " problems in " + DataPaths.text(at.data)
                            + (repair ? ", of which " + report.repaired() + " were repaired" : "")
                            + "; opening the store drops what is damaged and keeps the rest");
        }
        return 0;
    }

    private VerifyReport verify() {
        try (GivenFolders given = new GivenFolders(at.data)) {
            return repair
                    ? Verify.repair(given.folders(), given.options(), steps -> {
                        given.clear();
                        common.text().println("to be done:");
                        steps.forEach(step -> common.text().println("  " + step));
                    })
                    : Verify.run(given.folders(), given.options());
        }
    }

    private void print(VerifyReport report) {
        PrintStream out = common.text();
        for (Problem problem : report.problems()) {
            out.println(problem);
        }
        if (report.problemsFound() > report.problems().size()) {
            out.println("... and " + (report.problemsFound() - report.problems().size()) + " more");
        }
        out.println(String.format(
                Locale.ROOT,
                "%,d segments in use, %,d free; %,d batches, %,d footers; %,d blocks with %s checked: %,d wrong,"
                        + " %,d quarantined, %,d not durable",
                report.segmentsUsed(),
                report.segmentsFree(),
                report.batches(),
                report.footers(),
                report.blocksChecked(),
                Sizes.text(report.bytesChecked()),
                report.wrongBlocks(),
                report.quarantinedBlocks(),
                report.unsureBlocks()));
        out.println(String.format(
                Locale.ROOT,
                "pages: payload %,d + overhead %,d + free %,d = preallocated %,d; snapshot: %s",
                report.payloadPages(),
                report.overheadPages(),
                report.freePages(),
                report.preallocatedPages(),
                report.snapshot() ? "good" : "none"));
        if (!report.note().isEmpty()) {
            out.println("note: " + report.note());
        }
        if (report.repairable() > 0) {
            out.println(
                    repair
                            ? report.repaired() + " of " + report.problemsFound()
                                    + " problems were repaired; the next opening" + " scans the log"
                            : report.repairable() + " can be repaired: 'orbitkv verify --repair'");
        }
        out.println(report.isClean() ? "no problems" : report.problemsFound() + " problems");
    }

    private Json json(VerifyReport report) {
        Json json = new Json()
                .put("data", DataPaths.text(at.data))
                .put("clean", report.isClean())
                .put("problems_found", report.problemsFound())
                .put("segments_used", report.segmentsUsed())
                .put("segments_free", report.segmentsFree())
                .put("batches", report.batches())
                .put("footers", report.footers())
                .put("blocks", report.blocks())
                .put("blocks_checked", report.blocksChecked())
                .put("bytes_checked", report.bytesChecked())
                .put("wrong_blocks", report.wrongBlocks())
                .put("quarantined_blocks", report.quarantinedBlocks())
                .put("unsure_blocks", report.unsureBlocks())
                .put("payload_pages", report.payloadPages())
                .put("overhead_pages", report.overheadPages())
                .put("free_pages", report.freePages())
                .put("preallocated_pages", report.preallocatedPages())
                .put("snapshot", report.snapshot())
                .put("repairable", report.repairable())
                .put("repaired", report.repaired())
                .put("note", report.note())
                .array("problems");
        for (Problem problem : report.problems()) {
            json.element()
                    .put("code", problem.code().label())
                    .put("file", problem.file())
                    .put("segment", problem.segment())
                    .put("page", problem.page())
                    .put("file_offset", problem.offset())
                    .put("text", problem.text())
                    .end();
        }
        return json.end();
    }
}
