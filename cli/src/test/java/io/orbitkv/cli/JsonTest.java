package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import io.orbitkv.kit.Seed;
import java.io.IOException;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * Goal: whatever goes in comes out of a JSON reader as it was.
 * Method: fixed texts, and random strings of all characters that another implementation (Jackson) reads back.
 */
class JsonTest {
    @Test
    void writesInOrder() {
        Json json = new Json().put("a", 1).put("b", 2.5).put("c", true).put("d", (String) null);
        json.object("e").put("f", "x").end();
        json.array("g").add("y").add("z").end();
        json.array("h").element().put("i", -1).end().element().end().end();
        assertEquals(
                "{\"a\":1,\"b\":2.5,\"c\":true,\"d\":null,\"e\":{\"f\":\"x\"},\"g\":[\"y\",\"z\"],\"h\":[{\"i\":-1},{}]}",
                json.toString());
    }

    @Test
    void writesNumbersThatJsonCanSay() {
        assertEquals("{\"a\":null}", new Json().put("a", Double.NaN).toString());
        assertEquals(
                "{\"a\":null}", new Json().put("a", Double.POSITIVE_INFINITY).toString());
        assertEquals("{\"a\":0}", new Json().put("a", 0.0).toString());
        assertEquals("{\"a\":100}", new Json().put("a", 100.0).toString());
        assertEquals("{\"a\":0.123457}", new Json().put("a", 0.1234567).toString());
        assertEquals("{\"a\":1.0E18}", new Json().put("a", 1e18).toString());
    }

    @Test
    void escapes() {
        assertEquals(
                "{\"\\\"\":\"\\\\\\n\\r\\t\\u0000\\u001f\\u007f/é\\ud800\"}",
                new Json().put("\"", "\\\n\r\t\0\u001f\u007f/é\ud800").toString());
    }

    @Test
    void refusesWhatIsNotClosed() {
        assertThrows(IllegalStateException.class, () -> new Json().object("a").toString());
        assertThrows(IllegalStateException.class, () -> new Json().end());
        assertThrows(IllegalStateException.class, () -> new Json().array("a").put("b", 1));
    }

    @Test
    void anotherReaderGetsTheSameStrings() throws IOException {
        long seed = Seed.of(JsonTest.class);
        SplittableRandom random = new SplittableRandom(seed);
        for (int round = 0; round < 2_000; round++) {
            StringBuilder text = new StringBuilder();
            for (int i = random.nextInt(12); i > 0; i--) {
                text.appendCodePoint(random.nextInt(4) == 0 ? random.nextInt(0x80) : validCodePoint(random));
            }
            try (JsonParser parser = new JsonFactory()
                    .createParser(new Json().put("k", text.toString()).toString())) {
                parser.nextToken();
                parser.nextToken();
                assertEquals(JsonToken.VALUE_STRING, parser.nextToken());
                assertEquals(text.toString(), parser.getText(), "seed " + seed);
            }
        }
    }

    private static int validCodePoint(SplittableRandom random) {
        int point = random.nextInt(Character.MAX_CODE_POINT + 1);
        return point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE ? 'x' : point;
    }
}
