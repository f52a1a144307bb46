package io.orbitkv.store;

import io.orbitkv.index.Namespace;
import io.orbitkv.nativeio.Extent;
import io.orbitkv.nativeio.MemoryRegion;

/**
 * One shard of an open family: what a block is saved to and restored from. Safe from any thread.
 *
 * <p>A clear gives the shard a new binding; blocks that were published under the old one are unreachable from then on.
 */
public final class ShardHandle {
    private final FamilyHandle family;
    private final Namespace namespace;
    private final long id64;
    private final int number;
    private volatile Binding binding;

    /** The shard's place in the index, and the epoch that its blocks carry in the log. */
    record Binding(int indexNumber, int epoch) {}

    ShardHandle(FamilyHandle family, Namespace namespace, int number, Binding binding) {
        this.family = family;
        this.namespace = namespace;
        this.id64 = namespace.id64();
        this.number = number;
        this.binding = binding;
    }

    /** The family that this is a part of. */
    public FamilyHandle family() {
        return family;
    }

    /** Its number within the family, from 0. */
    public int number() {
        return number;
    }

    /** What a block's key is unique in. */
    public Namespace namespace() {
        return namespace;
    }

    /** Bytes of each of its blocks. */
    public int blockBytes() {
        return family.family().blockBytes();
    }

    long id64() {
        return id64;
    }

    /** Bytes that a block takes in a segment: whole pages. */
    int paddedBytes() {
        return Extent.pages(blockBytes()) * MemoryRegion.PAGE_BYTES;
    }

    Binding binding() {
        return binding;
    }

    void rebind(Binding next) {
        binding = next;
    }
}
