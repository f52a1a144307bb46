package io.orbitkv.bench;

import java.util.List;

/**
 * What {@link DiskBench} found.
 *
 * @param rows its comparisons
 * @param fioVersion which fio
 * @param fioFixedBuffers whether fio registered its buffers
 */
public record DiskResult(List<DiskRow> rows, String fioVersion, boolean fioFixedBuffers) {
    /** Copies the list. */
    public DiskResult {
        rows = List.copyOf(rows);
    }

    /** Whether both sides of every row lay on the same kind of pages: what differs there can't be compared. */
    public boolean hasEqualPages() {
        return rows.stream().allMatch(row -> row.storePages().equals(row.floorPages()));
    }
}
