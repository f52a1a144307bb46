package io.orbitkv.cli;

import io.orbitkv.index.Family;
import io.orbitkv.recovery.FamilyFile;
import io.orbitkv.store.Blocks;
import io.orbitkv.store.FamilyHandle;
import io.orbitkv.store.KvStore;
import io.orbitkv.store.Level;
import io.orbitkv.store.SaveResult;
import io.orbitkv.store.SyncOutcome;
import org.agrona.concurrent.UnsafeBuffer;

/** Saves the blocks of a file one by one, and counts what became of them. Blocks that are there stay as they are. */
final class ImportedBlocks {
    private static final int RETRIES_MAX = 50;
    private static final long SYNC_MILLIS = 60_000;

    private final KvStore store;
    private final FamilyHandle family;
    private final SaveResult result = new SaveResult();
    private final Blocks source = Blocks.unset();
    private final UnsafeBuffer key = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer parent = new UnsafeBuffer(0, 0);
    private long imported;
    private long present;
    private long dropped;
    private long wrong;

    ImportedBlocks(KvStore store, Family family) {
        this.store = store;
        this.family = store.openFamily(family);
    }

    void take(FamilyFile.Block block) {
        if (!block.matches()) {
            wrong++;
            return;
        }
        key.wrap(block.key());
        parent.wrap(block.parent());
        for (int i = 0; i < RETRIES_MAX; i++) {
            store.save(
                    family.shard(block.shard()),
                    block.hasParent() ? parent : null,
                    0,
                    key,
                    0,
                    1,
                    source.set(block.bytes(), 0),
                    result);
            imported += result.accepted();
            present += result.present();
            if (result.dropped() == 0) {
                return;
            }
            if (store.sync(store.acceptedPosition(), Level.WRITTEN, SYNC_MILLIS) != SyncOutcome.REACHED) {
                break;
            }
        }
        dropped++;
    }

    long blocks() {
        return imported + present + dropped + wrong;
    }

    long imported() {
        return imported;
    }

    long present() {
        return present;
    }

    long dropped() {
        return dropped;
    }

    long wrong() {
        return wrong;
    }
}
