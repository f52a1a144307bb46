package io.orbitkv.recovery;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.DataFolders;
import io.orbitkv.tiers.LogGeometry;
import io.orbitkv.tiers.LogState;
import java.util.List;

/**
 * The data folders of a store, open: what the store is built from. Catalog and index are the receiver's to close.
 *
 * @param folders in the order of their numbers
 * @param kind how the life before ended
 * @param epoch of this life
 * @param catalog open for writing
 * @param geometry the sizes of the log
 * @param logState what the log holds
 * @param index being filled by {@code fill}
 * @param namespaces those that the catalog knows, each with its number in the index
 * @param nextPosition the position that the next accepted block gets
 * @param budget how the cap is shared out
 * @param lostFolders data folders that held nothing of their store and were made anew
 * @param fill fills the index, once it is stepped; the receiver's to close
 */
public record OpenedFolder(
        DataFolders folders,
        OpeningKind kind,
        long epoch,
        Catalog catalog,
        LogGeometry geometry,
        LogState logState,
        PrefixIndex index,
        List<OpenedNamespace> namespaces,
        long nextPosition,
        Budget budget,
        List<String> lostFolders,
        IndexFill fill) {
    /** Where every page of the log went; null before the index is whole. */
    public Accounting accounting() {
        return fill.accounting();
    }

    /** What the opening met; null before the index is whole. */
    public OpeningReport report() {
        return fill.report();
    }
}
