package io.orbitkv.store;

import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.Generations;
import io.orbitkv.recovery.IndexFactory;
import io.orbitkv.tiers.LogGeometry;

/** Makes the index that an opening fills, with the generations that it checks extents against. */
final class IndexMaker implements IndexFactory, AutoCloseable {
    private final long blocksMax;
    private final Generations host;
    private Generations generations;
    private PrefixIndex index;

    IndexMaker(long blocksMax, Generations host) {
        this.blocksMax = blocksMax;
        this.host = host;
    }

    @Override
    public PrefixIndex create(LogGeometry geometry) {
        close();
        generations = new Generations(geometry.segments());
        index = new PrefixIndex(blocksMax, host, generations);
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
