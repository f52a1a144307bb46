package io.orbitkv.cli;

import io.orbitkv.index.Family;
import io.orbitkv.index.KeyChain;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.recovery.BlockAnswer;
import io.orbitkv.recovery.BlockPlace;
import io.orbitkv.recovery.Inspection;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import org.agrona.concurrent.UnsafeBuffer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code orbitkv explain}: why a prefix hits or misses, block by block. */
@Command(
        name = "explain",
        sortOptions = false,
        description = {
            "Says block by block why a prefix hits or misses: where it lies, or whether it was cleared, evicted, put in"
                    + " quarantine, lacks a shard, or belongs to another family. Changes nothing.",
            "Name the prefix by --prompt (as put and get do), by its keys or by its tokens. Works beside a process that has"
                    + " the store open, but sees no host memory. Exit code 1 when a block misses."
        })
final class ExplainCommand implements Callable<Integer> {
    private static final int BLOCKS_MAX = 1 << 20;
    private static final int ROWS_SHOWN = 1000;

    @Spec
    private CommandSpec spec;

    @Mixin
    private StoreFolders at;

    @Option(
            names = "--family",
            paramLabel = "<id>",
            description = "The first digits of the family's id, as 'orbitkv inspect' shows it."
                    + " Default: the family of --model and --block-bytes.")
    private String family;

    @Option(
            names = "--model",
            paramLabel = "<name>",
            defaultValue = "orbitkv-file",
            description = "The model that put has used. Default: ${DEFAULT-VALUE}.")
    private String model;

    @Option(
            names = "--block-bytes",
            paramLabel = "<size>",
            defaultValue = "64kb",
            converter = Sizes.class,
            description = "The bytes of a block that put has used. Default: ${DEFAULT-VALUE}.")
    private long blockBytes;

    @Option(
            names = "--prompt",
            paramLabel = "<text>",
            description = "The prompt that put has used. Default: none, give keys or tokens.")
    private String prompt;

    @Option(
            names = "--blocks",
            paramLabel = "<n>",
            defaultValue = "16",
            description = "With --prompt: how many blocks of it, 1 to 1048576. Default: ${DEFAULT-VALUE}.")
    private int blocks;

    @Option(
            names = "--keys",
            paramLabel = "<file>",
            description = "A file with the blocks' keys, a line of 64 hexadecimal digits each. Default: none.")
    private Path keysFile;

    @Option(
            names = "--tokens",
            paramLabel = "<file>",
            description = "A file with the prompt's tokens, whole numbers with white space between; needs --family."
                    + " Default: none.")
    private Path tokensFile;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() throws IOException {
        common.apply();
        int named = (prompt == null ? 0 : 1) + (keysFile == null ? 0 : 1) + (tokensFile == null ? 0 : 1);
        if (named != 1) {
            throw bad("name the prefix by one of --prompt, --keys and --tokens");
        }
        if (blocks < 1 || blocks > BLOCKS_MAX) {
            throw bad("--blocks is " + blocks + "; give 1 to " + BLOCKS_MAX);
        }
        try (GivenFolders given = new GivenFolders(at.data)) {
            Inspection inspection = Inspection.of(given.folders(), given.options());
            Family whose = family == null
                    ? PromptKeys.family("file", model, (int) blockBytes)
                    : FamilyChoice.of(inspection.families(), family, spec);
            UnsafeBuffer keys = keys(whose);
            int count = keys.capacity() / KeyChain.KEY_BYTES;
            List<BlockAnswer> answers = inspection.explain(whose, keys, count);
            given.clear();
            return report(inspection, whose, answers);
        }
    }

    private UnsafeBuffer keys(Family whose) throws IOException {
        if (prompt != null) {
            PromptKeys keys = new PromptKeys(blocks);
            keys.set(prompt, blocks);
            return keys.buffer();
        }
        Path file = keysFile != null ? keysFile : tokensFile;
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            throw bad("cannot read " + file + "; name a file that exists and is readable");
        }
        return keysFile != null ? keysOf(Files.readAllLines(file)) : keysOfTokens(Files.readString(file), whose);
    }

    private UnsafeBuffer keysOf(List<String> lines) {
        List<String> filled = lines.stream()
                .map(String::strip)
                .filter(line -> !line.isEmpty())
                .toList();
        byte[] bytes = new byte[filled.size() * KeyChain.KEY_BYTES];
        for (int i = 0; i < filled.size(); i++) {
            if (!filled.get(i).matches("[0-9a-fA-F]{64}")) {
                throw new OrbitKvException(
                        ErrorCode.BAD_INPUT_LINE,
                        keysFile + ", key " + (i + 1) + ": '" + filled.get(i) + "' is not 64 hexadecimal digits");
            }
            System.arraycopy(
                    HexFormat.of().parseHex(filled.get(i)), 0, bytes, i * KeyChain.KEY_BYTES, KeyChain.KEY_BYTES);
        }
        return new UnsafeBuffer(bytes);
    }

    private UnsafeBuffer keysOfTokens(String text, Family whose) {
        String[] words = text.strip().split("\\s+");
        int[] tokens = new int[words.length];
        for (int i = 0; i < words.length; i++) {
            try {
                tokens[i] = Integer.parseUnsignedInt(words[i]);
            } catch (NumberFormatException e) {
                throw new OrbitKvException(
                        ErrorCode.BAD_INPUT_LINE,
                        tokensFile + ", token " + (i + 1) + ": '" + words[i] + "' is no whole number of 32 bits",
                        e);
            }
        }
        int count = tokens.length / whose.blockTokens();
        UnsafeBuffer keys = new UnsafeBuffer(new byte[count * KeyChain.KEY_BYTES]);
        new KeyChain(whose.blockTokens()).keys(null, 0, tokens, 0, count, keys, 0);
        return keys;
    }

    private int report(Inspection inspection, Family whose, List<BlockAnswer> answers) {
        int hits = 0;
        while (hits < answers.size() && answers.get(hits).outcome() == BlockAnswer.Outcome.HIT) {
            hits++;
        }
        common.text().println(ViewText.moment(inspection.epoch(), inspection.atMillis(), inspection.owner()));
        common.text().println(whose + ": " + hits + " of " + answers.size() + " blocks hit from the start");
        Table table = new Table(false, "block", "key", "outcome", "tier", "segment:page", "use", "why");
        Json json = new Json().put("data", DataPaths.text(at.data));
        ViewText.moment(json, inspection.epoch(), inspection.atMillis(), inspection.owner())
                .put("family", HexFormat.of().formatHex(whose.id()))
                .put("blocks", answers.size())
                .put("hit_blocks", hits)
                .array("answers");
        for (BlockAnswer answer : answers.subList(0, Math.min(ROWS_SHOWN, answers.size()))) {
            BlockPlace place =
                    answer.places().isEmpty() ? null : answer.places().get(0);
            boolean hit = answer.outcome() == BlockAnswer.Outcome.HIT;
            table.row(
                    "" + answer.number(),
                    answer.key().substring(0, 16),
                    ViewText.state(answer.outcome()),
                    hit ? "nvme" : "-",
                    place == null ? "-" : place.segment() + ":" + place.page(),
                    place == null ? "-" : "" + place.useSequence(),
                    answer.why());
            json.element()
                    .put("block", answer.number())
                    .put("key", answer.key())
                    .put("outcome", answer.outcome().name().toLowerCase(java.util.Locale.ROOT))
                    .put("tier", hit ? "nvme" : null)
                    .put("why", answer.why())
                    .array("places");
            answer.places().forEach(one -> ViewText.place(json.element(), one).end());
            json.end().end();
        }
        table.print(common.text());
        if (answers.size() > ROWS_SHOWN) {
            common.text().println("... and " + (answers.size() - ROWS_SHOWN) + " more");
        }
        common.print(json.end());
        return hits == answers.size() ? 0 : ErrorCode.FOUND_PROBLEMS.category().exitCode();
    }

    private ParameterException bad(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
