package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

/**
 * Everything that makes stored bytes compatible, except the shard. Blocks of different families never meet.
 *
 * <p>The canonical encoding, of which {@link #id} is the SHA-256, little-endian:
 *
 * <pre>
 *  0  8 magic   "OKVFAM01"
 *  8  2 fields  17
 * 10    fields in the order of their numbers, each:
 *         0 2 number
 *         2 4 length   of the value in bytes
 *         6   value    text is UTF-8 without terminator; numbers are 4 bytes; what was not given has length 0
 *
 *  1 model id           text     2 weights digest     bytes    3 operator fingerprint  text
 *  4 tokenizer digest   bytes    5 kv dtype           text     6 layout                bytes, opaque
 *  7 block bytes        number   8 block tokens       number   9 tp size               number
 * 10 pp size            number  11 replicated         number, 0 or 1
 * 12 engine             text    13 hash algorithm     text    14 hash seed             text
 * 15 scope              text    16 tenant salt        bytes   17 group                 number, 0
 * </pre>
 *
 * <p>A family of {@code tp * pp} ranks has a shard for each, number {@code ppRank * tp + tpRank}; where all tp ranks
 * hold the same bytes (<i>replicated</i>, as with MLA) it has one for each pp rank, and a block is stored once.
 *
 * <p>Immutable.
 */
public final class Family {
    /** Length of an id in bytes. */
    public static final int ID_BYTES = 32;

    /** Most bytes of one block of one shard: the most that an int holds, less a page. */
    public static final int BLOCK_BYTES_MAX = Integer.MAX_VALUE - 4095;

    /** Most ranks of tensor or pipeline parallelism. */
    public static final int RANKS_MAX = 4096;

    /** Most bytes of any one field, and so of what a peer can make us keep. */
    public static final int FIELD_BYTES_MAX = 16 << 10;

    private static final byte[] MAGIC = "OKVFAM01".getBytes(StandardCharsets.US_ASCII);
    private static final int FIELDS = 17;
    private static final byte[] NONE = new byte[0];

    private static final List<String> FIELD_NAMES = List.of(
            "model id",
            "weights digest",
            "operator fingerprint",
            "tokenizer digest",
            "kv dtype",
            "layout",
            "block bytes",
            "block tokens",
            "tp size",
            "pp size",
            "replicated",
            "engine",
            "hash algorithm",
            "hash seed",
            "scope",
            "tenant salt",
            "group");

    private final String modelId;
    private final byte[] weightsDigest;
    private final String fingerprint;
    private final byte[] tokenizerDigest;
    private final String kvDtype;
    private final byte[] layout;
    private final int blockBytes;
    private final int blockTokens;
    private final int tpSize;
    private final int ppSize;
    private final boolean replicated;
    private final String engine;
    private final String hashAlgorithm;
    private final String hashSeed;
    private final String scope;
    private final byte[] tenantSalt;
    private final byte[] encoded;
    private final byte[] id;

    private Family(Builder from) {
        this.modelId = from.modelId;
        this.weightsDigest = from.weightsDigest;
        this.fingerprint = from.fingerprint;
        this.tokenizerDigest = from.tokenizerDigest;
        this.kvDtype = from.kvDtype;
        this.layout = from.layout;
        this.blockBytes = from.blockBytes;
        this.blockTokens = from.blockTokens;
        this.tpSize = from.tpSize;
        this.ppSize = from.ppSize;
        this.replicated = from.replicated;
        this.engine = from.engine;
        this.hashAlgorithm = from.hashAlgorithm;
        this.hashSeed = from.hashSeed;
        this.scope = from.scope;
        this.tenantSalt = from.tenantSalt;
        requireComplete();
        this.encoded = encode();
        this.id = KeyChain.sha256().digest(encoded);
    }

    /** Starts a family of which nothing is known but one rank. */
    public static Builder builder() {
        return new Builder();
    }

    /** SHA-256 of the canonical encoding, 32 bytes; a copy. */
    public byte[] id() {
        return id.clone();
    }

    /** The canonical encoding; a copy. */
    public byte[] encoded() {
        return encoded.clone();
    }

    /** How many shards each block has: a hit exists only where all of them are stored. */
    public int shards() {
        return replicated ? ppSize : tpSize * ppSize;
    }

    /** The number of a rank's shard, from 0. */
    public int shard(int tpRank, int ppRank) {
        if (tpRank < 0 || tpRank >= tpSize || ppRank < 0 || ppRank >= ppSize) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "no rank tp " + tpRank + " pp " + ppRank + " in a family of tp " + tpSize + " pp " + ppSize);
        }
        return replicated ? ppRank : ppRank * tpSize + tpRank;
    }

    /** One shard of this family. */
    public Namespace namespace(int shard) {
        return new Namespace(this, shard);
    }

    /** The model's name: for people, identity stands in the digests. */
    public String modelId() {
        return modelId;
    }

    /** Data type of keys and values, for example {@code bf16}. */
    public String kvDtype() {
        return kvDtype;
    }

    /** Bytes of one block of one shard. */
    public int blockBytes() {
        return blockBytes;
    }

    /** Tokens of a block. */
    public int blockTokens() {
        return blockTokens;
    }

    /** Ranks of tensor parallelism. */
    public int tpSize() {
        return tpSize;
    }

    /** Ranks of pipeline parallelism. */
    public int ppSize() {
        return ppSize;
    }

    /** Whether all tensor-parallel ranks hold the same bytes. */
    public boolean replicated() {
        return replicated;
    }

    /** The inference engine whose layout it is. */
    public String engine() {
        return engine;
    }

    /** How keys are made, for example {@code orbitkv-sha256}. */
    public String hashAlgorithm() {
        return hashAlgorithm;
    }

    /** The scope that the operator set, or empty. */
    public String scope() {
        return scope;
    }

    private void requireComplete() {
        List<String> missing = new ArrayList<>();
        if (modelId.isEmpty()) {
            missing.add("model id");
        }
        if (weightsDigest.length == 0 && fingerprint.isEmpty()) {
            missing.add("weights digest (or the operator's fingerprint, ORBITKV_MODEL_FINGERPRINT)");
        }
        if (tokenizerDigest.length == 0) {
            missing.add("tokenizer digest");
        }
        if (kvDtype.isEmpty()) {
            missing.add("kv dtype");
        }
        if (layout.length == 0) {
            missing.add("layout");
        }
        if (engine.isEmpty()) {
            missing.add("engine");
        }
        if (hashAlgorithm.isEmpty()) {
            missing.add("hash algorithm");
        }
        if (blockBytes == 0) {
            missing.add("block bytes");
        }
        if (blockTokens == 0) {
            missing.add("block tokens");
        }
        if (!missing.isEmpty()) {
            throw new OrbitKvException(
                    ErrorCode.BAD_FAMILY,
                    "the family" + (modelId.isEmpty() ? "" : " of model " + modelId) + " lacks "
                            + String.join(", ", missing)
                            + "; without it two models could share bytes, so it is not guessed");
        }
        requireBetween("block bytes", blockBytes, BLOCK_BYTES_MAX);
        requireBetween("block tokens", blockTokens, KeyChain.BLOCK_TOKENS_MAX);
        requireBetween("tp size", tpSize, RANKS_MAX);
        requireBetween("pp size", ppSize, RANKS_MAX);
    }

    private static void requireBetween(String what, int value, int most) {
        if (value < 1 || value > most) {
            throw new OrbitKvException(
                    ErrorCode.BAD_FAMILY, "the " + what + " of a family lie between 1 and " + most + ", got " + value);
        }
    }

    private byte[] encode() {
        byte[][] values = {
            text(modelId),
            weightsDigest,
            text(fingerprint),
            tokenizerDigest,
            text(kvDtype),
            layout,
            number(blockBytes),
            number(blockTokens),
            number(tpSize),
            number(ppSize),
            number(replicated ? 1 : 0),
            text(engine),
            text(hashAlgorithm),
            text(hashSeed),
            text(scope),
            tenantSalt,
            number(0)
        };
        int bytes = MAGIC.length + Short.BYTES;
        for (byte[] value : values) {
            bytes += Short.BYTES + Integer.BYTES + value.length;
        }
        ByteBuffer buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
        buffer.put(MAGIC).putShort((short) FIELDS);
        for (int field = 0; field < FIELDS; field++) {
            if (values[field].length > FIELD_BYTES_MAX) {
                throw new OrbitKvException(
                        ErrorCode.BAD_FAMILY,
                        "field " + (field + 1) + " of the family has " + values[field].length + " bytes, the most is "
                                + FIELD_BYTES_MAX + "; give a digest of it instead");
            }
            buffer.putShort((short) (field + 1)).putInt(values[field].length).put(values[field]);
        }
        return buffer.array();
    }

    private static byte[] text(String value) {
        return value.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] number(int value) {
        return ByteBuffer.allocate(Integer.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(value)
                .array();
    }

    /**
     * Reads a canonical encoding back.
     *
     * @throws OrbitKvException {@link ErrorCode#BAD_FAMILY} when it is not one
     */
    public static Family decode(byte[] encoded) {
        Reader reader = new Reader(encoded);
        Builder builder = builder()
                .modelId(reader.text())
                .weightsDigest(reader.bytes())
                .fingerprint(reader.text())
                .tokenizerDigest(reader.bytes())
                .kvDtype(reader.text())
                .layout(reader.bytes())
                .blockBytes(reader.number())
                .blockTokens(reader.number())
                .tpSize(reader.number())
                .ppSize(reader.number())
                .replicated(reader.number() == 1)
                .engine(reader.text())
                .hash(reader.text(), reader.text())
                .scope(reader.text())
                .tenantSalt(reader.bytes());
        reader.number();
        Family family = builder.build();
        if (!Arrays.equals(family.encoded, encoded)) {
            throw reader.bad("it is not in canonical form");
        }
        return family;
    }

    /** Takes fields in order. */
    private static final class Reader {
        private final ByteBuffer buffer;
        private int field;

        Reader(byte[] encoded) {
            buffer = ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN);
            byte[] magic = new byte[MAGIC.length];
            if (encoded.length < MAGIC.length + Short.BYTES) {
                throw bad("it has only " + encoded.length + " bytes");
            }
            buffer.get(magic);
            if (!Arrays.equals(magic, MAGIC) || buffer.getShort() != FIELDS) {
                throw bad("it does not begin with OKVFAM01 and " + FIELDS + " fields");
            }
        }

        byte[] bytes() {
            field++;
            if (buffer.remaining() < Short.BYTES + Integer.BYTES || buffer.getShort() != field) {
                throw bad("field " + field + " is missing");
            }
            int length = buffer.getInt();
            if (length < 0 || length > Math.min(FIELD_BYTES_MAX, buffer.remaining())) {
                throw bad("field " + field + " claims " + length + " bytes");
            }
            byte[] value = new byte[length];
            buffer.get(value);
            return value;
        }

        String text() {
            byte[] value = bytes();
            try {
                return StandardCharsets.UTF_8
                        .newDecoder()
                        .onMalformedInput(CodingErrorAction.REPORT)
                        .decode(ByteBuffer.wrap(value))
                        .toString();
            } catch (CharacterCodingException e) {
                throw bad("field " + field + " is not UTF-8");
            }
        }

        int number() {
            byte[] value = bytes();
            if (value.length != Integer.BYTES) {
                throw bad("field " + field + " is not a number of 4 bytes");
            }
            return ByteBuffer.wrap(value).order(ByteOrder.LITTLE_ENDIAN).getInt();
        }

        OrbitKvException bad(String why) {
            return new OrbitKvException(
                    ErrorCode.BAD_FAMILY,
                    "these " + buffer.capacity() + " bytes are no family: " + why
                            + "; they come from another version, or are damaged");
        }
    }

    /**
     * Names the fields in which two families differ.
     *
     * @return their names, in the order of their numbers; empty for equal families
     */
    public List<String> differences(Family other) {
        Reader mine = new Reader(encoded);
        Reader theirs = new Reader(other.encoded);
        List<String> names = new ArrayList<>();
        for (String name : FIELD_NAMES) {
            if (!Arrays.equals(mine.bytes(), theirs.bytes())) {
                names.add(name);
            }
        }
        return names;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Family family && Arrays.equals(encoded, family.encoded);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(id);
    }

    @Override
    public String toString() {
        return "family " + HexFormat.of().formatHex(id, 0, 4) + " of " + modelId;
    }

    /** Gathers a family's fields. Byte arrays are copied. */
    public static final class Builder {
        private String modelId = "";
        private byte[] weightsDigest = NONE;
        private String fingerprint = "";
        private byte[] tokenizerDigest = NONE;
        private String kvDtype = "";
        private byte[] layout = NONE;
        private int blockBytes;
        private int blockTokens;
        private int tpSize = 1;
        private int ppSize = 1;
        private boolean replicated;
        private String engine = "";
        private String hashAlgorithm = "";
        private String hashSeed = "";
        private String scope = "";
        private byte[] tenantSalt = NONE;

        private Builder() {}

        /** The model's name. Required. */
        public Builder modelId(String value) {
            this.modelId = value;
            return this;
        }

        /** A digest of the weights. Required, or a {@link #fingerprint}. */
        public Builder weightsDigest(byte[] value) {
            this.weightsDigest = value.clone();
            return this;
        }

        /** What the operator vouches to name the weights. */
        public Builder fingerprint(String value) {
            this.fingerprint = value;
            return this;
        }

        /** A digest of the tokenizer. Required. */
        public Builder tokenizerDigest(byte[] value) {
            this.tokenizerDigest = value.clone();
            return this;
        }

        /** Data type of keys and values, for example {@code bf16}. Required. */
        public Builder kvDtype(String value) {
            this.kvDtype = value;
            return this;
        }

        /** Describes how a block's bytes are laid out; only compared. Required. */
        public Builder layout(byte[] value) {
            this.layout = value.clone();
            return this;
        }

        /** Bytes of one block of one shard, 1 to {@link #BLOCK_BYTES_MAX}. Required. */
        public Builder blockBytes(int value) {
            this.blockBytes = value;
            return this;
        }

        /** Tokens of a block. Required. */
        public Builder blockTokens(int value) {
            this.blockTokens = value;
            return this;
        }

        /** Ranks of tensor parallelism, 1 unless given. */
        public Builder tpSize(int value) {
            this.tpSize = value;
            return this;
        }

        /** Ranks of pipeline parallelism, 1 unless given. */
        public Builder ppSize(int value) {
            this.ppSize = value;
            return this;
        }

        /** Whether all tensor-parallel ranks hold the same bytes; false unless given. */
        public Builder replicated(boolean value) {
            this.replicated = value;
            return this;
        }

        /** The inference engine. Required. */
        public Builder engine(String value) {
            this.engine = value;
            return this;
        }

        /** How keys are made, and the seed if there is one (empty otherwise). The algorithm is required. */
        public Builder hash(String algorithm, String seed) {
            this.hashAlgorithm = algorithm;
            this.hashSeed = seed;
            return this;
        }

        /** Keeps blocks of equal models apart where the operator wants it. */
        public Builder scope(String value) {
            this.scope = value;
            return this;
        }

        /** Keeps tenants apart. */
        public Builder tenantSalt(byte[] value) {
            this.tenantSalt = value.clone();
            return this;
        }

        /**
         * Makes the family.
         *
         * @throws OrbitKvException {@link ErrorCode#BAD_FAMILY} naming everything that is missing, or what is out of
         *     range
         */
        public Family build() {
            return new Family(this);
        }
    }
}
