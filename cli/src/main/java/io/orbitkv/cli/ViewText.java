package io.orbitkv.cli;

import io.orbitkv.recovery.BlockPlace;
import java.time.Instant;

/** Words that the tools have in common. */
final class ViewText {
    private ViewText() {}

    /** Which state of a store a tool has seen. */
    static String moment(long epoch, long atMillis, String owner) {
        return "epoch " + epoch + ", as of " + Instant.ofEpochMilli(atMillis)
                + (owner.isEmpty()
                        ? ""
                        : "; the store is in use and goes on meanwhile, and what it has in host memory only is not seen ("
                                + owner + ")");
    }

    /** The same as an object's members. */
    static Json moment(Json json, long epoch, long atMillis, String owner) {
        return json.put("epoch", epoch)
                .put("at", Instant.ofEpochMilli(atMillis).toString())
                .put("in_use", !owner.isEmpty())
                .put("owner", owner);
    }

    static String checksum(int value) {
        return String.format("%08x", value);
    }

    static String id64(long value) {
        return String.format("%016x", Long.reverseBytes(value));
    }

    static String state(Enum<?> state) {
        return state.name().toLowerCase(java.util.Locale.ROOT).replace('_', ' ');
    }

    static Json place(Json json, BlockPlace place) {
        return json.put("segment", place.segment())
                .put("page", place.page())
                .put("use_sequence", place.useSequence())
                .put("file", place.file())
                .put("file_offset", place.fileOffset())
                .put("key", place.key())
                .put("parent", place.parent())
                .put("namespace", id64(place.namespaceId64()))
                .put("namespace_epoch", Integer.toUnsignedLong(place.namespaceEpoch()))
                .put("position", place.birth())
                .put("stored_bytes", place.storedBytes())
                .put("logical_bytes", place.logicalBytes())
                .put("codec", place.codec())
                .put("checksum", checksum(place.checksum()))
                .put("state", place.state().name().toLowerCase(java.util.Locale.ROOT));
    }
}
