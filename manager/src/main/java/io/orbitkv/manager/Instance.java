package io.orbitkv.manager;

/** One engine: its sessions share leases and a budget. Guarded by {@link LeaseTable}. */
final class Instance {
    private final String name;

    /** Sessions that belong to it. */
    int sessions;

    /** Bytes that its leases claim. */
    long leasedBytes;

    Instance(String name) {
        this.name = name;
    }

    String name() {
        return name;
    }
}
