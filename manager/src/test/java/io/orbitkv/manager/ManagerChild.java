package io.orbitkv.manager;

import io.orbitkv.store.StoreOptions;
import java.nio.file.Path;

/** A manager as a process of its own: {@code ManagerChild SOCKET FOLDER [POOL_MIB]}. Says so when it serves; ends with its stdin. */
final class ManagerChild {
    private ManagerChild() {}

    public static void main(String[] arguments) throws Exception {
        StoreOptions store = StoreOptions.in(Path.of(arguments[1]))
                .driveTimeoutMillis(60_000)
                .poolBytes((arguments.length > 2 ? Long.parseLong(arguments[2]) : 32) << 20)
                .capBytes(256L << 20);
        try (Manager manager = Manager.start(ManagerOptions.of(Path.of(arguments[0]), store))) {
            System.out.println("serving " + manager.epoch());
            while (System.in.read() >= 0) {
                // ends with the parent
            }
        }
    }
}
