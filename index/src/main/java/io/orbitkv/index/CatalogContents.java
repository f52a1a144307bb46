package io.orbitkv.index;

import java.util.List;

/**
 * Everything that a catalog held when it was read.
 *
 * @param identity what the store is
 * @param transaction the transaction that wrote last
 * @param mapBytes the length of its file
 * @param counters the value of each {@link CatalogCounter}, by ordinal
 * @param namespaces by {@code id64}
 * @param segments by number; segments that were never used have no row
 * @param quarantine by segment, use-sequence and page
 */
public record CatalogContents(
        CatalogIdentity identity,
        long transaction,
        long mapBytes,
        List<Long> counters,
        List<NamespaceRow> namespaces,
        List<SegmentRow> segments,
        List<QuarantineRow> quarantine) {
    /** The value of a counter. */
    public long counter(CatalogCounter counter) {
        return counters.get(counter.ordinal());
    }
}
