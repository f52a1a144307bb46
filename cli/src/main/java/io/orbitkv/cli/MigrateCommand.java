package io.orbitkv.cli;

import io.orbitkv.index.Catalog;
import io.orbitkv.recovery.Inspection;
import io.orbitkv.recovery.StoreInfo;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code orbitkv migrate}: brings a store to the format that this program writes. */
@Command(
        name = "migrate",
        sortOptions = false,
        description = {
            "Brings a store to the newest format that this program knows. There is one format so far (1 in one folder, 2"
                    + " in several), so nothing is ever to be done; a store of another version is refused unharmed."
        })
final class MigrateCommand implements Callable<Integer> {
    @Mixin
    private StoreFolders at;

    @Mixin
    private CommonOptions common;

    @Override
    public Integer call() {
        common.apply();
        try (GivenFolders given = new GivenFolders(at.data)) {
            Inspection inspection = Inspection.of(given.folders(), given.options());
            StoreInfo info = inspection.store(false);
            given.clear();
            int version = info.identity().formatVersion();
            common.text()
                    .println("the store in " + DataPaths.text(at.data) + " has format " + version
                            + ", and this program writes " + Catalog.FORMAT_VERSION + " (one folder) and "
                            + Catalog.FORMAT_VERSION_FOLDERS + " (several): nothing is to be done");
            Json json = new Json().put("data", DataPaths.text(at.data));
            common.print(ViewText.moment(json, inspection.epoch(), inspection.atMillis(), inspection.owner())
                    .put("format", version)
                    .put("to_do", 0));
            return 0;
        }
    }
}
