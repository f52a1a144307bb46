package io.orbitkv.index;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import net.openhft.chronicle.core.values.LongValue;
import net.openhft.chronicle.map.ChronicleMap;

/**
 * The twin of {@link OpenAddressing} on Chronicle Map, in anonymous memory: simple, right and some 20 times slower.
 *
 * <p>Every call is atomic within the map, which locks a part of itself for it, so that a reader is never overtaken:
 * what it does not find is certainly absent.
 */
final class ChronicleDirectory implements Directory {
    private final ChronicleMap<LongValue, LongValue> places;

    ChronicleDirectory(long keysMax) {
        this.places = ChronicleMaps.map(keysMax);
    }

    @Override
    public long find(long hash) {
        return get(hash);
    }

    @Override
    public long get(long hash) {
        LongValue place = places.getUsing(ChronicleMaps.key(hash), ChronicleMaps.value(Place.NONE));
        return place == null ? Place.NONE : place.getValue();
    }

    @Override
    public void put(long hash, long place) {
        places.put(ChronicleMaps.key(hash), ChronicleMaps.value(place));
    }

    @Override
    public void repoint(long hash, long place) {
        if (places.replace(ChronicleMaps.key(hash), ChronicleMaps.value(place)) == null) {
            throw lost();
        }
    }

    @Override
    public void remove(long hash) {
        if (places.remove(ChronicleMaps.key(hash)) == null) {
            throw lost();
        }
    }

    private static OrbitKvException lost() {
        return new OrbitKvException(ErrorCode.BUG, "the directory of the index lost a key that it should hold");
    }

    @Override
    public long bytes() {
        return places.offHeapMemoryUsed();
    }

    @Override
    public long hugeBytes() {
        return 0;
    }

    @Override
    public void close() {
        places.close();
    }
}
