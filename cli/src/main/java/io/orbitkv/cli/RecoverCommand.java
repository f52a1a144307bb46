package io.orbitkv.cli;

import io.orbitkv.index.Family;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.CatalogRebuild;
import io.orbitkv.recovery.Inspection;
import io.orbitkv.recovery.NamespaceInfo;
import io.orbitkv.recovery.OpeningKind;
import io.orbitkv.recovery.StoreInfo;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Lease;
import io.orbitkv.store.StoreOptions;
import java.io.PrintStream;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code orbitkv recover}: what an opening would find and do, how long it takes, and a catalog made again. */
@Command(
        name = "recover",
        sortOptions = false,
        description = {
            "Says what an opening of the store would find and do: how the last life ended, whether the snapshot counts, blocks"
                    + " by what they are worth, times. Changes nothing.",
            "With --rebuild-catalog it says what a new catalog could be made of, and makes it with --apply; the old one"
                    + " stays beside it under another name. With --time the store is really opened and closed again.",
            "Exit code 1 when the catalog is damaged or blocks have wrong bytes."
        })
final class RecoverCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private StoreFolders at;

    @Option(
            names = "--rebuild-catalog",
            description = "Make a damaged or lost catalog again from the log and the spare copy beside it.")
    private boolean rebuildCatalog;

    @Option(names = "--apply", description = "With --rebuild-catalog: do it. Without it nothing is changed.")
    private boolean apply;

    @Option(
            names = "--time",
            description = "Open the store for real, measure, and close it: it counts as a life of the store.")
    private boolean time;

    @Option(
            names = "--pool-size",
            paramLabel = "<size>",
            defaultValue = "64mb",
            converter = Sizes.class,
            description = "With --time: bytes of host memory of the store. Default: ${DEFAULT-VALUE}.")
    private long poolBytes;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        if (apply && !rebuildCatalog) {
            throw new ParameterException(
                    spec.commandLine(), "--apply is for --rebuild-catalog; an opening does the rest");
        }
        if (time && rebuildCatalog) {
            throw new ParameterException(spec.commandLine(), "give --time or --rebuild-catalog, not both");
        }
        return rebuildCatalog ? rebuild() : time ? time() : look();
    }

    private int look() {
        try (GivenFolders given = new GivenFolders(at.data)) {
            StoreInfo info = inspect(given);
            given.clear();
            print(info);
            Json json = new Json().put("data", DataPaths.text(at.data));
            ViewText.moment(json, info.epoch(), info.atMillis(), info.owner());
            common.print(json(json, info));
            return info.report().blocksChecked() > 0
                            && info.accounting().dead(io.orbitkv.recovery.DeadReason.WRONG_BYTES) > 0
                    ? ErrorCode.FOUND_PROBLEMS.category().exitCode()
                    : 0;
        }
    }

    private StoreInfo inspect(GivenFolders given) {
        try {
            return Inspection.of(given.folders(), given.options()).store(true);
        } catch (OrbitKvException e) {
            if (e.code() == ErrorCode.CATALOG) {
                throw new OrbitKvException(
                        ErrorCode.CATALOG, e.getMessage() + "; or see 'orbitkv recover --rebuild-catalog'", e);
            }
            throw e;
        }
    }

    private void print(StoreInfo info) {
        PrintStream out = common.text();
        out.println(ViewText.moment(info.epoch(), info.atMillis(), info.owner()));
        out.println((info.isInUse() ? "a kill now would be opened as after " : "an opening finds the store as after ")
                + info.lastEnd());
        out.println(
                info.fromSnapshot()
                        ? "the snapshot counts: the log is not scanned"
                        : "no snapshot counts: the log is scanned"
                                + (info.lastEnd() == OpeningKind.POWER_LOSS
                                        ? ", and blocks that were not known durable are checked"
                                        : ""));
        out.println(info.accounting());
        out.println("segments: " + info.report().footersRead() + " by their footers, "
                + info.report().batchesWalked() + " by their batches (an opening seals them), "
                + info.report().segmentsDamaged() + " damaged; " + info.report().blocksChecked() + " blocks checked");
        info.folders().stream()
                .filter(StoreInfo.FolderInfo::lost)
                .forEach(
                        folder -> out.println(folder.path() + " holds nothing of the store: an opening makes it anew"));
        out.println(String.format(
                Locale.ROOT,
                "time here: headers %.1f ms, index %.1f ms; an opening takes about as long, and some commits",
                info.headersNanos() / 1e6,
                info.indexNanos() / 1e6));
        info.report().notes().forEach(note -> out.println("note: " + note));
        out.println("nothing was changed");
    }

    private static Json json(Json json, StoreInfo info) {
        json.put("last_end", info.lastEnd().name().toLowerCase(Locale.ROOT))
                .put("from_snapshot", info.fromSnapshot())
                .put("footers_read", info.report().footersRead())
                .put("batches_walked", info.report().batchesWalked())
                .put("segments_damaged", info.report().segmentsDamaged())
                .put("blocks_checked", info.report().blocksChecked())
                .put("headers_ms", info.headersNanos() / 1e6)
                .put("index_ms", info.indexNanos() / 1e6);
        InspectCommand.StoreText.accounting(json, info.accounting()).array("notes");
        info.report().notes().forEach(json::add);
        return json.end();
    }

    private int rebuild() {
        try (GivenFolders given = new GivenFolders(at.data)) {
            CatalogRebuild.Report report = CatalogRebuild.run(given.folders(), given.options(), apply);
            given.clear();
            PrintStream out = common.text();
            report.damage().forEach(out::println);
            Json json = new Json()
                    .put("data", DataPaths.text(at.data))
                    .put("damaged", report.damage().size())
                    .put("applied", !report.kept().isEmpty())
                    .put("source", report.source())
                    .put("namespaces", report.namespaces().size())
                    .put("listed_blocks", report.listedBlocks())
                    .put("blocks", report.blocks())
                    .object("dead_blocks");
            report.deadBlocks()
                    .forEach((reason, count) -> json.put(reason.name().toLowerCase(Locale.ROOT), count));
            json.end().array("kept");
            report.kept().forEach(json::add);
            if (report.damage().isEmpty()) {
                out.println("every catalog can be read: nothing is to be rebuilt");
                common.print(json.end());
                return 0;
            }
            out.println("namespaces, epochs and counters come from " + report.source() + ", all else from the log:");
            report.namespaces()
                    .forEach(one -> out.println("  namespace " + ViewText.id64(one.id64()) + " at epoch "
                            + Integer.toUnsignedString(one.epoch()) + ": " + one.family() + ", shard " + one.shard()));
            out.println(report.listedBlocks() + " blocks are listed: " + report.blocks() + " count, dead "
                    + report.deadBlocks());
            out.println(
                    "lost: places in quarantine whose bytes are right again; when segments that were given up before a"
                            + " clean stop hold blocks still, those are found again");
            if (!apply) {
                out.println("nothing was changed; give --apply to make the catalog");
                common.print(json.end());
                return ErrorCode.FOUND_PROBLEMS.category().exitCode();
            }
            report.kept().forEach(kept -> out.println("the old catalog: " + kept));
            out.println(
                    "the catalog was made again; the next opening scans the log. Remove the old one when all is well:"
                            + " it counts as a foreign file");
            common.print(json.end());
            return 0;
        }
    }

    private int time() {
        StoreInfo before;
        try (GivenFolders given = new GivenFolders(at.data)) {
            before = inspect(given);
        }
        if (before.isInUse()) {
            throw new OrbitKvException(
                    ErrorCode.FOLDER_IN_USE,
                    "--time opens the store, so nobody else may have it: " + before.owner() + "; leave --time out");
        }
        print(before);
        long started = System.nanoTime();
        try (KvStore store = KvStore.open(
                StoreOptions.inFolders(at.data).poolBytes(poolBytes).capBytes(0))) {
            double openMillis = (System.nanoTime() - started) / 1e6;
            double queryMillis = firstQuery(store, before, started);
            store.awaitWhole(Long.MAX_VALUE); // blocks are counted when all are there
            common.text()
                    .println(String.format(
                            Locale.ROOT,
                            "opened after %s in %.1f ms; first query answered after %.1f ms, %d blocks in the index",
                            store.openReport().kind(),
                            openMillis,
                            queryMillis,
                            store.stats().indexBlocks()));
            Json json = new Json().put("data", DataPaths.text(at.data));
            json(json, before)
                    .put("kind", store.openReport().kind().name().toLowerCase(Locale.ROOT))
                    .put("open_ms", openMillis)
                    .put("first_query_ms", queryMillis)
                    .put("index_blocks", store.stats().indexBlocks());
            common.print(json);
        }
        return 0;
    }

    /** Milliseconds from the start to the answer of a query, of a family that is there: a new one would be written down. */
    private static double firstQuery(KvStore store, StoreInfo info, long started) {
        Family known = info.namespaces().stream()
                .map(NamespaceInfo::family)
                .filter(family -> family != null)
                .findFirst()
                .orElse(null);
        if (known != null) {
            PromptKeys keys = new PromptKeys(1);
            keys.set("recover", 1);
            try (Lease lease = store.query(store.openFamily(known), keys.buffer(), 0, 1)) {
                assert lease.blocks() >= 0;
            }
        }
        return (System.nanoTime() - started) / 1e6;
    }
}
