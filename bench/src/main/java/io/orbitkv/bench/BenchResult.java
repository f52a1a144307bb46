package io.orbitkv.bench;

import java.util.List;

/**
 * What a benchmark found.
 *
 * @param rows its lines, floors first
 * @param pages the pages that its memory lay on, one for each block size
 */
public record BenchResult(List<BenchRow> rows, List<Pages> pages) {
    /** Copies the lists. */
    public BenchResult {
        rows = List.copyOf(rows);
        pages = List.copyOf(pages);
    }
}
