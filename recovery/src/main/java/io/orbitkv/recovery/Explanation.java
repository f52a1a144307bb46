package io.orbitkv.recovery;

import io.orbitkv.index.Family;
import io.orbitkv.index.Namespace;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.recovery.BlockAnswer.Outcome;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.agrona.DirectBuffer;

/**
 * Says block by block why a prefix hits or misses. What a running store has in host memory only can't be seen from outside:
 * such a block is {@link Outcome#NOT_FOUND} until it has reached the drive.
 */
final class Explanation {
    private static final int KEY_BYTES = 32;

    private final StoreView view;
    private final Family family;
    private final Map<Long, NamespaceRow> rows = new LinkedHashMap<>();
    private final boolean known;

    Explanation(StoreView view, Family family) {
        this.view = view;
        this.family = family;
        view.catalog().namespaces().forEach(row -> rows.put(row.id64(), row));
        boolean all = true;
        for (int shard = 0; shard < family.shards(); shard++) {
            all &= rows.containsKey(family.namespace(shard).id64());
        }
        this.known = all;
    }

    List<BlockAnswer> answers(DirectBuffer keys, int count, OpeningOptions options) {
        Map<BlockSearch.Key, Integer> wanted = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            wanted.put(BlockSearch.Key.of(keys, i * KEY_BYTES), i);
        }
        Map<BlockSearch.Key, List<BlockPlace>> found = new BlockSearch(view, options).find(wanted.keySet());
        List<BlockAnswer> answers = new ArrayList<>();
        byte[] key = new byte[KEY_BYTES];
        for (int i = 0; i < count; i++) {
            keys.getBytes(i * KEY_BYTES, key);
            List<BlockPlace> places = found.getOrDefault(BlockSearch.Key.of(keys, i * KEY_BYTES), List.of());
            answers.add(answer(i, HexFormat.of().formatHex(key), places));
        }
        return answers;
    }

    private BlockAnswer answer(int number, String key, List<BlockPlace> places) {
        List<BlockPlace> hits = new ArrayList<>();
        List<Integer> missing = new ArrayList<>();
        BlockPlace reason = null;
        for (int shard = 0; shard < family.shards(); shard++) {
            Namespace namespace = family.namespace(shard);
            BlockPlace best = best(places, namespace.id64());
            if (best != null && best.state() == BlockState.INDEXED) {
                hits.add(best);
            } else {
                missing.add(shard);
                reason = reason == null ? best : reason;
            }
        }
        if (missing.isEmpty()) {
            return new BlockAnswer(number, key, Outcome.HIT, hits, "on the drive");
        }
        if (!hits.isEmpty()) {
            return new BlockAnswer(
                    number,
                    key,
                    Outcome.SHARD_MISSING,
                    hits,
                    "shards " + missing + " of " + family.shards() + " lack it"
                            + (reason == null ? "" : ": " + why(reason)));
        }
        if (reason != null) {
            return new BlockAnswer(number, key, outcome(reason), List.of(reason), why(reason));
        }
        return notOurs(number, key, places);
    }

    /** The place of a namespace that counts, else the one that came closest. */
    private static BlockPlace best(List<BlockPlace> places, long id64) {
        BlockPlace best = null;
        for (BlockPlace place : places) {
            if (place.namespaceId64() == id64
                    && (best == null || place.state().ordinal() < best.state().ordinal())) {
                best = place;
            }
        }
        return best;
    }

    private static Outcome outcome(BlockPlace place) {
        return switch (place.state()) {
            case CLEARED -> Outcome.CLEARED;
            case QUARANTINED -> Outcome.QUARANTINED;
            case UNKNOWN_NAMESPACE -> Outcome.UNKNOWN_FAMILY;
            default -> Outcome.EVICTED;
        };
    }

    private String why(BlockPlace place) {
        NamespaceRow row = rows.get(place.namespaceId64());
        String where = "segment " + place.segment() + " page " + place.page() + ", use " + place.useSequence();
        return switch (place.state()) {
            case CLEARED ->
                "stored at epoch " + Integer.toUnsignedString(place.namespaceEpoch())
                        + ", and the family was cleared since: its epoch is "
                        + Integer.toUnsignedString(row.epoch()) + " (" + where + ")";
            case QUARANTINED -> "its bytes were found wrong: " + where + " is in quarantine";
            case STALE_USE -> "its segment was reused: it was at " + where + ", which has ended";
            case UNKNOWN_NAMESPACE -> "the catalog does not know its namespace at this epoch: " + where;
            default -> "given up before the last clean stop: it was at " + where;
        };
    }

    private BlockAnswer notOurs(int number, String key, List<BlockPlace> places) {
        for (BlockPlace place : places) {
            NamespaceRow row = rows.get(place.namespaceId64());
            Family other = row == null ? null : NamespaceInfo.family(row);
            if (other != null && place.state() == BlockState.INDEXED) {
                return new BlockAnswer(
                        number,
                        key,
                        Outcome.OTHER_FAMILY,
                        List.of(place),
                        "stored for another family (" + other + "), which differs in "
                                + String.join(", ", family.differences(other)));
            }
        }
        if (!known) {
            return new BlockAnswer(number, key, Outcome.UNKNOWN_FAMILY, List.of(), unknown());
        }
        if (!view.lost().isEmpty()) {
            return new BlockAnswer(
                    number,
                    key,
                    Outcome.FOLDER_LOST,
                    List.of(),
                    "not in the folders that are there; folders " + view.lost() + " of "
                            + view.folders().count() + " are lost, and it may have been in them");
        }
        return new BlockAnswer(
                number,
                key,
                Outcome.NOT_FOUND,
                List.of(),
                "nothing of it is in the log: never stored, or evicted and written over since"
                        + (view.isInUse() ? ", or in host memory only" : ""));
    }

    /** The family that comes nearest, by the number of fields in which it differs. */
    private String unknown() {
        List<String> fewest = null;
        Family nearest = null;
        for (NamespaceRow row : rows.values()) {
            Family other = NamespaceInfo.family(row);
            if (other != null) {
                List<String> differences = family.differences(other);
                if (fewest == null || differences.size() < fewest.size()) {
                    fewest = differences;
                    nearest = other;
                }
            }
        }
        return "the store has never seen " + family
                + (nearest == null
                        ? ""
                        : "; the nearest it has is " + nearest + ", which differs in " + String.join(", ", fewest));
    }
}
