package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.recovery.IndexFactory;
import io.orbitkv.tiers.LogGeometry;

/** Makes the index that an opening fills, with the generations that it checks extents against. */
final class IndexMaker implements IndexFactory, AutoCloseable {
    private final StoreOptions options;
    private final Generations host;
    private Generations generations;
    private PrefixIndex index;

    IndexMaker(StoreOptions options, Generations host) {
        this.options = options;
        this.host = host;
    }

    @Override
    public PrefixIndex create(LogGeometry geometry) {
        close();
        generations = new Generations(geometry.segments());
        index = new PrefixIndex(
                Sizes.indexBlocksMax(options, geometry.totalBytes()), host, generations, options.directory());
        return index;
    }

    PrefixIndex index() {
        return index;
    }

    Generations generations() {
        return generations;
    }

    @Override
    public void close() {
        if (index != null) {
            index.close();
        }
        if (generations != null) {
            generations.close();
        }
    }
}
