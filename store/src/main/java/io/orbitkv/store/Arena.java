package io.orbitkv.store;

import io.orbitkv.nativeio.MemoryRegion;

/**
 * Host memory as other processes see it: the store owns it, nobody else can write it.
 *
 * @param pool the segments, back to back; its descriptor can be passed on
 * @param generations 4 bytes a segment, in order: the life that it is in; its descriptor can be passed on
 * @param poolName what /proc calls the memfd of the pool; the same for every life of the store in these folders
 * @param segmentBytes bytes of a segment
 * @param segments how many
 */
public record Arena(MemoryRegion pool, MemoryRegion generations, String poolName, int segmentBytes, int segments) {}
