package io.orbitkv.store;

import io.orbitkv.index.Catalog;
import io.orbitkv.index.CatalogCounter;
import io.orbitkv.index.Family;
import io.orbitkv.index.Namespace;
import io.orbitkv.index.NamespaceRow;
import io.orbitkv.index.PrefixIndex;
import io.orbitkv.nativeio.CrashWindow;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.OrbitKvException;
import io.orbitkv.nativeio.WindowProbe;
import io.orbitkv.recovery.IndexFill;
import io.orbitkv.recovery.OpenedNamespace;
import io.orbitkv.tiers.LogGeometry;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.agrona.collections.Int2ObjectHashMap;
import org.agrona.collections.Long2ObjectHashMap;

/**
 * The families that are open, and the namespaces that the catalog knows. A namespace is in the catalog before its
 * first block is accepted, and a clear is there before it is answered; both are commits of their own.
 */
final class Families {
    /** More are refused: each costs a row of the catalog and a number of the index. */
    private static final int FAMILIES_MAX = 4096;

    private final KvStore store;
    private final Catalog catalog;
    private final PrefixIndex index;
    private final Object writerLock;
    private final LogGeometry geometry;
    private final int hostSegmentBytes;
    private final WindowProbe probe;
    private final IndexFill fill;
    private final Map<Long, NamespaceRow> known = new HashMap<>();
    private final Map<Long, Integer> numbers = new HashMap<>();
    private final Map<Family, FamilyHandle> open = new HashMap<>();

    /** Rows by index number, and what clients call those of which somebody was told. Guarded by the writer lock. */
    private final Int2ObjectHashMap<NamespaceRow> rows = new Int2ObjectHashMap<>();

    private final Int2ObjectHashMap<Name> names = new Int2ObjectHashMap<>();

    /** A namespace as clients call it. */
    record Name(byte[] familyId, int shard) {}

    /** Bindings by id64, for the log's thread. Guarded by the writer lock. */
    private final Long2ObjectHashMap<ShardHandle.Binding> bindings = new Long2ObjectHashMap<>();

    Families(
            KvStore store,
            Catalog catalog,
            PrefixIndex index,
            Object writerLock,
            LogGeometry geometry,
            int hostSegmentBytes,
            WindowProbe probe,
            IndexFill fill,
            List<OpenedNamespace> atOpening) {
        this.store = store;
        this.catalog = catalog;
        this.index = index;
        this.writerLock = writerLock;
        this.geometry = geometry;
        this.hostSegmentBytes = hostSegmentBytes;
        this.probe = probe;
        this.fill = fill;
        for (OpenedNamespace opened : atOpening) {
            known.put(opened.row().id64(), opened.row());
            numbers.put(opened.row().id64(), opened.number());
            rows.put(opened.number(), opened.row());
        }
    }

    /** Opens a family, or hands out the handle that there is. */
    synchronized FamilyHandle open(Family family) {
        FamilyHandle handle = open.get(family);
        if (handle != null) {
            return handle;
        }
        requireFits(family);
        if (open.size() == FAMILIES_MAX) {
            throw new OrbitKvException(
                    ErrorCode.OVER_LIMIT, FAMILIES_MAX + " families are open already; use fewer, or several stores");
        }
        List<Namespace> namespaces = new ArrayList<>();
        for (int shard = 0; shard < family.shards(); shard++) {
            namespaces.add(family.namespace(shard));
        }
        enlist(namespaces);
        handle = new FamilyHandle(store, family);
        List<ShardHandle> shards = new ArrayList<>();
        for (Namespace namespace : namespaces) {
            shards.add(new ShardHandle(handle, namespace, shards.size(), binding(namespace)));
        }
        handle.shards(shards);
        open.put(family, handle);
        return handle;
    }

    private void requireFits(Family family) {
        int blockBytes = family.blockBytes();
        int pages = Extent.pages(blockBytes);
        long hostPages = hostSegmentBytes / MemoryRegion.PAGE_BYTES;
        if (pages > geometry.blockPagesMax() || pages > hostPages) {
            throw new OrbitKvException(
                    ErrorCode.BLOCK_TOO_LARGE,
                    "a block of " + blockBytes + " bytes does not fit into segments of " + geometry.segmentBytes()
                            + " bytes on the drive and " + hostSegmentBytes
                            + " in host memory; make the store with larger segments (segmentBytes, or"
                            + " blockBytesLargest " + blockBytes + ")");
        }
    }

    /** The shard of a namespace at an epoch, its family being opened where it is not; null where the catalog has none. */
    synchronized ShardHandle shard(long id64, int epoch) {
        NamespaceRow row = known.get(id64);
        if (row == null || row.epoch() != epoch) {
            return null;
        }
        ByteBuffer definition = ByteBuffer.wrap(row.definition()).order(ByteOrder.LITTLE_ENDIAN);
        int shard = definition.getInt();
        byte[] encoded = new byte[definition.remaining()];
        definition.get(encoded);
        return open(Family.decode(encoded)).shard(shard);
    }

    /** Writes the namespaces down that the catalog doesn't know, in one commit. */
    private void enlist(List<Namespace> namespaces) {
        List<NamespaceRow> fresh = new ArrayList<>();
        for (Namespace namespace : namespaces) {
            NamespaceRow row = known.get(namespace.id64());
            if (row == null) {
                fresh.add(new NamespaceRow(namespace.id64(), namespace.id(), 0, namespace.encoded()));
            } else if (!Arrays.equals(row.id(), namespace.id())) {
                throw new OrbitKvException(
                        ErrorCode.BAD_FAMILY,
                        "namespace " + HexFormat.of().formatHex(namespace.id()) + " shares its first 8 bytes with "
                                + HexFormat.of().formatHex(row.id())
                                + ", which this store holds; use another store, or another scope");
            }
        }
        if (!fresh.isEmpty()) {
            try (Catalog.Batch batch = catalog.begin()) {
                fresh.forEach(batch::putNamespace);
                batch.commit();
            }
            fresh.forEach(row -> known.put(row.id64(), row));
        }
    }

    private ShardHandle.Binding binding(Namespace namespace) {
        Integer number = numbers.get(namespace.id64());
        if (number == null) {
            synchronized (writerLock) {
                number = index.newNamespace();
                rows.put((int) number, known.get(namespace.id64()));
            }
            numbers.put(namespace.id64(), number);
        }
        return bind(
                namespace.id64(),
                new ShardHandle.Binding(number, known.get(namespace.id64()).epoch()));
    }

    private ShardHandle.Binding bind(long id64, ShardHandle.Binding binding) {
        synchronized (writerLock) {
            bindings.put(id64, binding);
        }
        return binding;
    }

    /** The index number of a namespace at an epoch, or -1 where a clear has retired it. Under the writer lock. */
    int numberOf(long id64, int epoch) {
        ShardHandle.Binding binding = bindings.get(id64);
        return binding != null && binding.epoch() == epoch ? binding.indexNumber() : -1;
    }

    /** What clients call the namespace that has an index number; null where a clear has retired it. Under the writer lock. */
    Name nameOf(int number) {
        Name name = names.get(number);
        return name == null ? readName(number) : name;
    }

    private Name readName(int number) {
        NamespaceRow row = rows.get(number);
        if (row == null) {
            return null;
        }
        ByteBuffer definition = ByteBuffer.wrap(row.definition()).order(ByteOrder.LITTLE_ENDIAN);
        int shard = definition.getInt();
        byte[] encoded = new byte[definition.remaining()];
        definition.get(encoded);
        Name name = new Name(Family.decode(encoded).id(), shard);
        names.put(number, name);
        return name;
    }

    /** Forgets every block of a family: the commit is the moment from which it is so, at any crash. */
    synchronized void clear(FamilyHandle family, Residency residency) {
        probe.enter(CrashWindow.CLEAR);
        try {
            List<NamespaceRow> next = new ArrayList<>();
            for (int i = 0; i < family.shards(); i++) {
                NamespaceRow row = known.get(family.shard(i).namespace().id64());
                next.add(new NamespaceRow(row.id64(), row.id(), row.epoch() + 1, row.definition()));
            }
            try (Catalog.Batch batch = catalog.begin()) {
                next.forEach(batch::putNamespace);
                batch.addCounter(CatalogCounter.CLEARS, 1);
                batch.commit();
            }
            synchronized (writerLock) { // over all shards: no block of the new epoch is told before the clear
                for (int i = 0; i < next.size(); i++) {
                    NamespaceRow row = next.get(i);
                    known.put(row.id64(), row);
                    rebind(family.shard(i), row);
                }
                residency.cleared(family.family().id());
            }
        } finally {
            probe.leave(CrashWindow.CLEAR);
        }
    }

    private void rebind(ShardHandle shard, NamespaceRow row) {
        int number = index.newNamespace();
        int retired = shard.binding().indexNumber();
        index.retire(retired);
        rows.remove(retired);
        names.remove(retired);
        rows.put(number, row);
        fill.cleared(row.id64(), row.epoch(), number);
        numbers.put(row.id64(), number);
        shard.rebind(bind(row.id64(), new ShardHandle.Binding(number, row.epoch())));
    }

    /** All namespaces that the catalog knows, with their epochs and index numbers of now. */
    synchronized List<OpenedNamespace> now() {
        List<OpenedNamespace> all = new ArrayList<>();
        numbers.forEach((id64, number) -> all.add(new OpenedNamespace(known.get(id64), number)));
        return all;
    }
}
