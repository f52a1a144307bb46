package io.orbitkv.cli;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.Accounting;
import io.orbitkv.recovery.BlockInfo;
import io.orbitkv.recovery.BlockPlace;
import io.orbitkv.recovery.Inspection;
import io.orbitkv.recovery.NamespaceInfo;
import io.orbitkv.recovery.SegmentInfo;
import io.orbitkv.recovery.StoreInfo;
import java.io.PrintStream;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code orbitkv inspect}: looks into a store, down to the bytes of a block. */
@Command(
        name = "inspect",
        sortOptions = false,
        description = {
            "Says what a store is and holds: folders, families, segments, where every page of the log went. With --segment,"
                    + " --batch or --block it looks closer. Changes nothing.",
            "Works beside a process that has the store open: it reads one state of the catalog, names it, and says so."
                    + " Exit code 1 when the block that is asked for is not there or has other bytes than were saved."
        })
final class InspectCommand implements Callable<Integer> {
    private static final int ROWS_SHOWN = 200;

    @Spec
    private CommandSpec spec;

    @Mixin
    private StoreFolders at;

    @Option(
            names = "--segment",
            paramLabel = "<n>",
            description = "Look at this segment: header, batches, footer, blocks. Default: at the whole store.")
    private Integer segment;

    @Option(
            names = "--batch",
            paramLabel = "<page>",
            description =
                    "With --segment: show the blocks of the batch whose header is in this page only. Default: all.")
    private Integer batch;

    @Option(
            names = "--block",
            paramLabel = "<segment:page|key>",
            description =
                    "Look at the block at a place, or at all places of a key of 64 hexadecimal digits. Default: none.")
    private String block;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        check();
        try (GivenFolders given = new GivenFolders(at.data)) {
            Inspection inspection = Inspection.of(given.folders(), given.options());
            Json json = new Json().put("data", DataPaths.text(at.data));
            ViewText.moment(json, inspection.epoch(), inspection.atMillis(), inspection.owner());
            common.text().println(ViewText.moment(inspection.epoch(), inspection.atMillis(), inspection.owner()));
            if (block != null) {
                return blocks(given, inspection, json);
            }
            if (segment != null) {
                SegmentInfo info = inspection.segment(segment);
                given.clear();
                print(info);
                common.print(json(json, info));
                return 0;
            }
            StoreInfo info = inspection.store(false);
            given.clear();
            new StoreText(common.text()).print(info);
            common.print(StoreText.json(json, info));
            return 0;
        }
    }

    private void check() {
        if (batch != null && segment == null) {
            throw bad("--batch is a page of a segment; give --segment too");
        }
        if (block != null && segment != null) {
            throw bad("--block says where by itself; leave --segment out");
        }
        if (block != null && !block.matches("[0-9]{1,9}:[0-9]{1,5}|[0-9a-fA-F]{64}")) {
            throw bad("--block is '" + block + "'; give segment:page, or a key of 64 hexadecimal digits");
        }
    }

    private ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    private int blocks(GivenFolders given, Inspection inspection, Json json) {
        List<BlockInfo> found;
        if (block.indexOf(':') > 0) {
            String[] place = block.split(":");
            BlockInfo one = inspection.block(Integer.parseInt(place[0]), Integer.parseInt(place[1]));
            found = one == null ? List.of() : List.of(one);
        } else {
            found = inspection.blocks(HexFormat.of().parseHex(block.toLowerCase(java.util.Locale.ROOT)));
        }
        given.clear();
        boolean wrong = false;
        json.array("blocks");
        for (BlockInfo one : found) {
            print(one);
            ViewText.place(json.element(), one.place())
                    .put("computed_checksum", ViewText.checksum(one.computed()))
                    .put("matches", one.matches())
                    .put("first_bytes", HexFormat.of().formatHex(one.firstBytes()))
                    .end();
            wrong |= !one.matches();
        }
        common.print(json.end());
        if (found.isEmpty()) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    "no block is listed at " + block + " in " + DataPaths.text(at.data)
                            + "; 'orbitkv explain' says why a prefix misses");
        }
        if (wrong) {
            throw new OrbitKvException(
                    ErrorCode.FOUND_PROBLEMS,
                    "bytes do not match their checksum; 'orbitkv verify --repair' puts such places in quarantine");
        }
        return 0;
    }

    private void print(BlockInfo one) {
        PrintStream out = common.text();
        BlockPlace place = one.place();
        out.println("block " + place.key() + ": " + ViewText.state(place.state()));
        out.println("  segment " + place.segment() + " page " + place.page() + ", use-sequence " + place.useSequence()
                + "; " + place.file() + " at byte " + place.fileOffset());
        out.println("  parent " + (place.parent().isEmpty() ? "none: a prompt's first block" : place.parent()));
        out.println("  namespace " + ViewText.id64(place.namespaceId64()) + " at epoch "
                + Integer.toUnsignedString(place.namespaceEpoch()) + ", position " + place.birth());
        out.println("  stored bytes " + place.storedBytes() + ", logical bytes " + place.logicalBytes() + ", codec "
                + place.codec());
        out.println("  checksum listed " + ViewText.checksum(place.checksum()) + ", computed "
                + ViewText.checksum(one.computed()) + (one.matches() ? ": good" : ": WRONG"));
        out.println("  bytes " + HexFormat.of().formatHex(one.firstBytes())
                + (place.storedBytes() > one.firstBytes().length ? "..." : ""));
        for (BlockPlace other : one.others()) {
            out.println("  also at segment " + other.segment() + " page " + other.page() + ", use-sequence "
                    + other.useSequence() + ", namespace " + ViewText.id64(other.namespaceId64()) + ": "
                    + ViewText.state(other.state()));
        }
    }

    private List<BlockPlace> shown(SegmentInfo info) {
        if (batch == null) {
            return info.places();
        }
        for (SegmentInfo.BatchInfo one : info.batches()) {
            if (one.page() == batch) {
                int end = one.page() + 1 + one.payloadPages();
                return info.places().stream()
                        .filter(place -> place.page() > batch && place.page() < end)
                        .toList();
            }
        }
        throw new OrbitKvException(
                ErrorCode.BAD_ARGUMENT,
                "no batch header that counts is in page " + batch + " of segment " + segment
                        + "; its batches are in pages "
                        + info.batches().stream()
                                .map(one -> Integer.toString(one.page()))
                                .collect(Collectors.joining(", ")));
    }

    private void print(SegmentInfo info) {
        PrintStream out = common.text();
        out.println("segment " + info.segment() + ": " + info.file() + " from byte " + info.fileOffset());
        out.println("  " + info.why());
        out.println("  header " + ViewText.state(info.header()) + ", footer " + ViewText.state(info.footer())
                + (info.footerBlocks() > 0 ? " with " + info.footerBlocks() + " blocks" : ""));
        out.println("  catalog: " + (info.row() == null ? "never used" : info.row()));
        Table batches = new Table(true, "batch", "header page", "blocks", "payload pages");
        info.batches()
                .forEach(one ->
                        batches.row("" + one.sequence(), "" + one.page(), "" + one.count(), "" + one.payloadPages()));
        batches.print(out);
        out.println("the walk over batches ends at page " + info.endPage() + ": " + ViewText.state(info.end()));
        Table blocks = new Table(false, "page", "bytes", "key", "namespace", "checksum", "state");
        List<BlockPlace> shown = shown(info);
        shown.stream()
                .limit(ROWS_SHOWN)
                .forEach(place -> blocks.row(
                        "" + place.page(),
                        "" + place.storedBytes(),
                        place.key().substring(0, 16),
                        ViewText.id64(place.namespaceId64()),
                        ViewText.checksum(place.checksum()),
                        ViewText.state(place.state())));
        blocks.print(out);
        if (shown.size() > ROWS_SHOWN) {
            out.println("... and " + (shown.size() - ROWS_SHOWN) + " more");
        }
    }

    private Json json(Json json, SegmentInfo info) {
        json.put("segment", info.segment())
                .put("file", info.file())
                .put("file_offset", info.fileOffset())
                .put("use_sequence", info.useSequence())
                .put("header", info.header().name().toLowerCase(java.util.Locale.ROOT))
                .put("footer", info.footer().name().toLowerCase(java.util.Locale.ROOT))
                .put("footer_blocks", info.footerBlocks())
                .put("end", info.end().name().toLowerCase(java.util.Locale.ROOT))
                .put("end_page", info.endPage())
                .put("blocks_listed", info.blocks())
                .put("why", info.why())
                .array("batches");
        for (SegmentInfo.BatchInfo one : info.batches()) {
            json.element()
                    .put("page", one.page())
                    .put("sequence", one.sequence())
                    .put("blocks", one.count())
                    .put("payload_pages", one.payloadPages())
                    .end();
        }
        json.end().array("blocks");
        shown(info).stream()
                .limit(ROWS_SHOWN)
                .forEach(place -> ViewText.place(json.element(), place).end());
        return json.end();
    }

    /** The store as a whole, in words and as an object. */
    static final class StoreText {
        private final PrintStream out;

        StoreText(PrintStream out) {
            this.out = out;
        }

        void print(StoreInfo info) {
            out.println("store " + info.identity().storeId() + ", format "
                    + info.identity().formatVersion() + ", made "
                    + java.time.Instant.ofEpochMilli(info.identity().createdMillis()) + ": "
                    + info.identity().segments() + " segments of "
                    + Sizes.text(info.identity().segmentBytes()) + ", cap "
                    + Sizes.text(info.identity().capBytes()));
            for (StoreInfo.FolderInfo folder : info.folders()) {
                out.println("folder " + folder.path() + ": " + Sizes.text(folder.allocatedBytes()) + " allocated, "
                        + Sizes.text(folder.freeBytes()) + " free on its file system"
                        + (folder.lost() ? "; LOST: it holds nothing of the store" : "")
                        + (folder.foreign().isEmpty()
                                ? ""
                                : "; foreign: " + folder.foreign() + " (" + Sizes.text(folder.foreignBytes()) + ")"));
            }
            out.println((info.isInUse() ? "a kill now would be opened as after " : "the last life ended by ")
                    + info.lastEnd()
                    + (info.fromSnapshot() ? ", and its snapshot counts" : ", so the log is scanned"));
            Table table = new Table(false, "namespace", "family", "model", "shard", "epoch", "blocks", "bytes");
            for (NamespaceInfo one : info.namespaces()) {
                table.row(
                        ViewText.id64(one.id64()),
                        one.family() == null
                                ? "?"
                                : HexFormat.of().formatHex(one.family().id(), 0, 8),
                        one.family() == null ? "?" : one.family().modelId(),
                        "" + one.shard(),
                        Integer.toUnsignedString(one.epoch()),
                        "" + one.blocks(),
                        Sizes.text(one.bytes()));
            }
            table.print(out);
            out.println("segments by the catalog: " + info.segmentStates());
            out.println("counters: " + info.counters());
            out.println("in quarantine: " + info.quarantined());
            info.quarantine()
                    .forEach(row -> out.println("  segment " + row.segment() + " page " + row.page() + ", use-sequence "
                            + row.useSequence()));
            out.println(info.accounting());
            if (info.segmentsChanged() > 0) {
                out.println(info.segmentsChanged() + " segments were put to use again while they were read");
            }
            info.report().notes().forEach(note -> out.println("note: " + note));
        }

        static Json json(Json json, StoreInfo info) {
            json.put("store_id", info.identity().storeId())
                    .put("format", info.identity().formatVersion())
                    .put("segment_bytes", info.identity().segmentBytes())
                    .put("segments", info.identity().segments())
                    .put("cap_bytes", info.identity().capBytes())
                    .put("transaction", info.transaction())
                    .put("last_end", info.lastEnd().name().toLowerCase(java.util.Locale.ROOT))
                    .put("from_snapshot", info.fromSnapshot())
                    .put("segments_changed", info.segmentsChanged())
                    .put("quarantined", info.quarantined())
                    .array("folders");
            for (StoreInfo.FolderInfo folder : info.folders()) {
                json.element()
                        .put("path", folder.path())
                        .put("allocated_bytes", folder.allocatedBytes())
                        .put("free_bytes", folder.freeBytes())
                        .put("foreign_bytes", folder.foreignBytes())
                        .put("lost", folder.lost())
                        .put("epoch", folder.epoch())
                        .put("pid", folder.pid())
                        .array("foreign");
                folder.foreign().forEach(json::add);
                json.end().end();
            }
            json.end().array("namespaces");
            for (NamespaceInfo one : info.namespaces()) {
                json.element()
                        .put("namespace", ViewText.id64(one.id64()))
                        .put(
                                "family",
                                one.family() == null
                                        ? null
                                        : HexFormat.of().formatHex(one.family().id()))
                        .put("model", one.family() == null ? null : one.family().modelId())
                        .put("shard", one.shard())
                        .put("epoch", Integer.toUnsignedLong(one.epoch()))
                        .put("blocks", one.blocks())
                        .put("bytes", one.bytes())
                        .end();
            }
            json.end().object("segment_states");
            info.segmentStates().forEach(json::put);
            json.end().object("counters");
            info.counters().forEach(json::put);
            json.end();
            accounting(json, info.accounting()).array("notes");
            info.report().notes().forEach(json::add);
            return json.end();
        }

        static Json accounting(Json json, Accounting pages) {
            json.object("pages")
                    .put("indexed", pages.indexedPages())
                    .put("dead", pages.deadPages())
                    .put("overhead", pages.overheadPages())
                    .put("free", pages.freePages())
                    .put("preallocated", pages.preallocatedPages())
                    .put("whole", pages.isWhole())
                    .end()
                    .put("indexed_blocks", pages.indexedBlocks())
                    .put("segments_used", pages.segmentsUsed())
                    .put("segments_free", pages.segmentsFree())
                    .object("dead_blocks");
            pages.deadBlocks()
                    .forEach((reason, count) -> json.put(reason.name().toLowerCase(java.util.Locale.ROOT), count));
            return json.end();
        }
    }
}
