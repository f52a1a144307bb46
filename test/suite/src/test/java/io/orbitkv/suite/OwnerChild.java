package io.orbitkv.suite;

import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Location;
import io.orbitkv.store.StoreOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A process that has a store open and is never idle: it saves blocks of a family that nobody asks for again, and restores those
 * of two others, so that these are appended again when their segments go. With {@code clear} it clears the second of them
 * and says so; it ends by being killed.
 *
 * <p>Lines on stdout: {@code READY} once blocks were appended again, {@code BLOCK number segment use} for each block of
 * the first family, {@code CLEARED} when the clear was answered.
 */
final class OwnerChild {
    static final int KEPT = 0;
    static final int CLEARED = 1;
    static final int BLOCKS = 120;

    private static final int CHURNED = 2;
    private static final int CHURN_BLOCKS = 16;
    private static final int USED_OF = 3;
    private static final int MOVED_MIN = 40;
    private static final int SEGMENT_BYTES = 256 << 10;

    private OwnerChild() {}

    static StoreOptions options(Path data) {
        return StoreOptions.in(data)
                .driveTimeoutMillis(60_000)
                .poolBytes(4 << 20)
                .capBytes(24 << 20)
                .segmentBytes(SEGMENT_BYTES)
                .pageKind(PageKind.SMALL)
                .lockWaitMillis(20_000);
    }

    /** A store whose index has all that lies on the drive. */
    static KvStore whole(KvStore store) {
        if (!store.awaitWhole(60_000)) {
            throw new AssertionError("the index is not whole: " + store.openReport());
        }
        return store;
    }

    public static void main(String[] args) {
        boolean clears = args.length > 1 && args[1].equals("clear");
        KvStore store = whole(KvStore.open(options(Path.of(args[0]))));
        NumberedBlocks kept = new NumberedBlocks(store, KEPT);
        NumberedBlocks cleared = new NumberedBlocks(store, CLEARED);
        NumberedBlocks churned = new NumberedBlocks(store, CHURNED);
        boolean ready = false;
        boolean isCleared = false;
        for (int round = 0; ; round++) {
            // Few blocks of each segment are used, and not always the same: so segments go, and used blocks are moved.
            for (int i = 0; i < CHURN_BLOCKS; i++) {
                int number = (round * CHURN_BLOCKS + i) / 2 % BLOCKS;
                churned.save(round * CHURN_BLOCKS + i, round * CHURN_BLOCKS + i + 1);
                kept.save(number, number + 1);
                if (!isCleared) { // what is saved again after a clear has every right to be found
                    cleared.save(number, number + 1);
                }
            }
            for (int i = round / 6 % USED_OF; i < BLOCKS; i += USED_OF) {
                kept.look(i);
                cleared.look(i);
            }
            if (round % 8 == 7) {
                NumberedBlocks other = new NumberedBlocks(store, CHURNED + 1 + round % 4);
                other.save(0, 1);
                store.clear(other.handle()); // commits of the catalog, with namespaces in them
            }
            if (!ready && store.stats().nvmeReappendedBlocks() > MOVED_MIN) {
                ready = true;
                System.out.println("READY");
                if (clears) {
                    clear(store, kept, cleared);
                    isCleared = true;
                }
            }
        }
    }

    private static void clear(KvStore store, NumberedBlocks kept, NumberedBlocks cleared) {
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < BLOCKS; i++) {
            Location place = kept.locate(i);
            if (place.onDrive()) {
                lines.add("BLOCK " + i + " " + place.segment() + " " + place.useSequence());
            }
        }
        lines.forEach(System.out::println);
        store.clear(cleared.handle());
        System.out.println("CLEARED");
        System.out.flush();
    }
}
