package io.orbitkv.bench.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.orbitkv.bench.trace.TraceFormat;
import io.orbitkv.bench.trace.TraceReader;
import io.orbitkv.bench.trace.TraceRequest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: a trace file gives the same figures today as yesterday, in either format.
 * Method: a small trace of generated chats that lies beside this test, against figures that the oracle confirmed, and the
 * same trace written as CSV.
 */
class TraceFixtureTest {
    private static final String NAME = "chats.jsonl";

    @TempDir
    private Path folder;

    private Path fixture;

    @BeforeEach
    void copyFixture() throws IOException {
        fixture = folder.resolve(NAME);
        try (InputStream in = TraceFixtureTest.class.getResourceAsStream(NAME)) {
            assertNotNull(in, NAME);
            Files.copy(in, fixture);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "BELADY, 1505, 436, 0", //
        "FIFO, 1054, 1142, 0",
        "SECOND_CHANCE_8, 1190, 1102, 84",
        "SEGMENT_LRU_8, 1151, 1137, 0",
        "TWO_TIERS_REUSE, 1092, 516, 24"
    })
    void figuresStay(SimPolicy policy, long hits, long written, long again) {
        SimResult result = new Simulator(read(fixture, TraceFormat.MOONCAKE), 0.2, 0.1).run(policy, 120);
        assertEquals(hits, result.hostHits() + result.nvmeHits());
        assertEquals(written, result.writtenBlocks());
        assertEquals(again, result.writtenAgainBlocks());
    }

    @Test
    void csvGivesTheSame() throws IOException {
        StringBuilder csv = new StringBuilder("time,tokens,hashes\n");
        TraceRequest request = new TraceRequest();
        try (TraceReader reader = open(fixture, TraceFormat.MOONCAKE)) {
            while (reader.next(request)) {
                csv.append(request.timeMillis())
                        .append(',')
                        .append(request.promptTokens())
                        .append(',');
                for (int i = 0; i < request.blocks(); i++) {
                    csv.append(i == 0 ? "" : " ").append("0x").append(Long.toHexString(request.id(i)));
                }
                csv.append('\n');
            }
        }
        Path file = folder.resolve("chats.csv");
        Files.writeString(file, csv);
        for (SimPolicy policy : SimPolicy.values()) {
            assertEquals(
                    new Simulator(read(fixture, TraceFormat.MOONCAKE), 0.2, 0.1).run(policy, 120),
                    new Simulator(read(file, TraceFormat.CSV), 0.2, 0.1).run(policy, 120));
        }
    }

    private static KeyTrace read(Path file, TraceFormat format) {
        try (TraceReader reader = open(file, format)) {
            return KeyTrace.read(reader, GeneratedTrace.BLOCK_TOKENS, requests -> {});
        }
    }

    private static TraceReader open(Path file, TraceFormat format) {
        return TraceReader.open(file, format, GeneratedTrace.BLOCK_TOKENS, Long.MAX_VALUE);
    }
}
