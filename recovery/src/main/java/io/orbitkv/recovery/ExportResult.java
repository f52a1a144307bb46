package io.orbitkv.recovery;

/**
 * What came of an export.
 *
 * @param blocks blocks written
 * @param bytes their bytes
 * @param dropped blocks that were left out: their bytes are not those that were saved, or were replaced meanwhile
 */
public record ExportResult(long blocks, long bytes, long dropped) {}
