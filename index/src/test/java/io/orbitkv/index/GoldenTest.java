package io.orbitkv.index;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.kit.HeapUse;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/**
 * Goal: keys, family ids and namespace ids are the same wherever they are computed, for ever.
 * Method: compare with vectors made by another program in another language, {@code golden/*.json}, one JSON object a
 * line; and try what must be refused.
 */
class GoldenTest {
    private static final HexFormat HEX = HexFormat.of();

    @Test
    void keyChain() throws IOException {
        List<String> vectors = lines("golden/key_chain.json");
        assertEquals(7, vectors.size());
        for (String vector : vectors) {
            int blockTokens = number(vector, "block_tokens");
            int[] tokens = Arrays.stream(list(vector, "tokens"))
                    .mapToInt(Integer::parseUnsignedInt)
                    .toArray();
            String[] expected = list(vector, "keys");
            UnsafeBuffer parent = buffer(text(vector, "parent"));
            UnsafeBuffer extra = buffer(text(vector, "extra"));
            UnsafeBuffer into = new UnsafeBuffer(new byte[5 + expected.length * 32]);
            KeyChain chain = new KeyChain(blockTokens);
            chain.keys(parent, 0, tokens, 0, expected.length, extra, into, 5);
            for (int i = 0; i < expected.length; i++) {
                assertEquals(expected[i], HEX.formatHex(into.byteArray(), 5 + i * 32, 37 + i * 32), vector);
            }
            // Block by block, each from the one before, is the same.
            for (int i = 1; i < expected.length; i++) {
                UnsafeBuffer one = new UnsafeBuffer(new byte[32]);
                chain.keys(into, 5 + (i - 1) * 32, tokens, i * blockTokens, 1, extra, one, 0);
                assertEquals(expected[i], HEX.formatHex(one.byteArray()), vector);
            }
        }
    }

    @Test
    void keyChainRefusesWhatDoesNotFit() {
        KeyChain chain = new KeyChain(4);
        UnsafeBuffer into = new UnsafeBuffer(new byte[32]);
        assertCode(
                ErrorCode.BAD_BUFFER, () -> chain.keys(null, 0, new int[7], 0, 2, new UnsafeBuffer(new byte[64]), 0));
        assertCode(ErrorCode.BAD_BUFFER, () -> chain.keys(null, 0, new int[8], 0, 2, into, 0));
        assertCode(ErrorCode.BAD_BUFFER, () -> chain.keys(null, 0, new int[4], -1, 1, into, 0));
        assertCode(ErrorCode.BAD_BUFFER, () -> chain.keys(into, 1, new int[4], 0, 1, into, 0));
        assertCode(ErrorCode.BAD_ARGUMENT, () -> chain.keys(null, 0, new int[4], 0, -1, into, 0));
        assertCode(ErrorCode.BAD_ARGUMENT, () -> new KeyChain(0));
    }

    @Test
    void keyChainAllocatesNothing() {
        KeyChain chain = new KeyChain(16);
        int[] tokens = new int[64 * 16];
        UnsafeBuffer into = new UnsafeBuffer(new byte[64 * 32]);
        chain.keys(null, 0, tokens, 0, 64, into, 0);
        assertEquals(0, HeapUse.fewestBytes(500, () -> chain.keys(into, 0, tokens, 0, 64, into, 0)));
    }

    @Test
    void families() throws IOException {
        List<String> vectors = lines("golden/family.json");
        assertEquals(6, vectors.size());
        for (String vector : vectors) {
            Family family = family(vector);
            assertEquals(text(vector, "encoded"), HEX.formatHex(family.encoded()), vector);
            assertEquals(text(vector, "id"), HEX.formatHex(family.id()), vector);
            assertEquals(family, Family.decode(family.encoded()));
            String[] ids = list(vector, "namespace_ids");
            String[] id64s = list(vector, "namespace_id64s");
            assertEquals(ids.length, family.shards());
            for (int shard = 0; shard < ids.length; shard++) {
                assertEquals(ids[shard], HEX.formatHex(family.namespace(shard).id()));
                assertEquals(
                        Long.parseUnsignedLong(id64s[shard], 16),
                        family.namespace(shard).id64());
            }
            assertCode(ErrorCode.BAD_ARGUMENT, () -> family.namespace(family.shards()));
        }
    }

    @Test
    void shardsOfRanks() throws IOException {
        List<String> vectors = lines("golden/family.json");
        Family sharded = family(vectors.get(1));
        assertEquals(8, sharded.shards());
        assertEquals(7, sharded.shard(3, 1));
        Family replicated = family(vectors.get(2));
        assertEquals(2, replicated.shards());
        assertEquals(1, replicated.shard(5, 1));
        assertCode(ErrorCode.BAD_ARGUMENT, () -> sharded.shard(4, 0));
        assertNotEquals(sharded.namespace(0), sharded.namespace(1));
    }

    @Test
    void missingIdentityIsNamedAndNeverGuessed() {
        OrbitKvException missing = assertCode(
                ErrorCode.BAD_FAMILY,
                () -> Family.builder().modelId("m").blockBytes(1).build());
        for (String name : List.of(
                "weights digest",
                "tokenizer digest",
                "kv dtype",
                "layout",
                "engine",
                "hash algorithm",
                "block tokens")) {
            assertTrue(missing.getMessage().contains(name), missing.getMessage());
        }
        assertTrue(!missing.getMessage().contains("block bytes"), missing.getMessage());
    }

    @Test
    void damagedEncodingsAreRefused() throws IOException {
        Family family = family(lines("golden/family.json").get(4));
        byte[] good = family.encoded();
        for (int length = 0; length < good.length; length++) {
            byte[] cut = Arrays.copyOf(good, length);
            assertCode(ErrorCode.BAD_FAMILY, () -> Family.decode(cut));
        }
        byte[] longer = Arrays.copyOf(good, good.length + 1);
        assertCode(ErrorCode.BAD_FAMILY, () -> Family.decode(longer));
        for (int i = 0; i < good.length; i++) {
            byte[] flipped = good.clone();
            flipped[i] ^= 0x40;
            try {
                Family other = Family.decode(flipped);
                assertArrayEquals(flipped, other.encoded());
                assertNotEquals(family, other);
            } catch (OrbitKvException e) {
                assertEquals(ErrorCode.BAD_FAMILY, e.code(), e.getMessage());
            }
        }
    }

    private static Family family(String vector) {
        return Family.builder()
                .modelId(text(vector, "model_id"))
                .weightsDigest(HEX.parseHex(text(vector, "weights_digest")))
                .fingerprint(text(vector, "fingerprint"))
                .tokenizerDigest(HEX.parseHex(text(vector, "tokenizer_digest")))
                .kvDtype(text(vector, "kv_dtype"))
                .layout(HEX.parseHex(text(vector, "layout")))
                .blockBytes(number(vector, "block_bytes"))
                .blockTokens(number(vector, "block_tokens"))
                .tpSize(number(vector, "tp_size"))
                .ppSize(number(vector, "pp_size"))
                .replicated(number(vector, "replicated") == 1)
                .engine(text(vector, "engine"))
                .hash(text(vector, "hash_algorithm"), text(vector, "hash_seed"))
                .scope(text(vector, "scope"))
                .tenantSalt(HEX.parseHex(text(vector, "tenant_salt")))
                .build();
    }

    private static OrbitKvException assertCode(ErrorCode code, Runnable refused) {
        OrbitKvException e = assertThrows(OrbitKvException.class, refused::run);
        assertEquals(code, e.code(), e.getMessage());
        return e;
    }

    private static UnsafeBuffer buffer(String hex) {
        return hex.isEmpty() ? null : new UnsafeBuffer(HEX.parseHex(hex));
    }

    private static List<String> lines(String resource) throws IOException {
        try (InputStream in = GoldenTest.class.getClassLoader().getResourceAsStream(resource)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> line.startsWith("  {"))
                    .toList();
        }
    }

    private static String find(String vector, String field, String pattern) {
        Matcher matcher = Pattern.compile("\"" + field + "\": " + pattern).matcher(vector);
        assertTrue(matcher.find(), field + " in " + vector);
        return matcher.group(1);
    }

    private static String text(String vector, String field) {
        Matcher escapes = Pattern.compile("\\\\u([0-9a-f]{4})").matcher(find(vector, field, "\"([^\"]*)\""));
        return escapes.replaceAll(found -> String.valueOf((char) Integer.parseInt(found.group(1), 16)));
    }

    private static int number(String vector, String field) {
        return Integer.parseInt(find(vector, field, "([0-9]+)"));
    }

    private static String[] list(String vector, String field) {
        return find(vector, field, "\\[([^\\]]*)\\]").replace("\"", "").split(", ");
    }
}
