package io.orbitkv.cli;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;

/** Lays out rows in columns: the first to the left, the others to the right unless told otherwise. */
final class Table {
    private final List<String[]> rows = new ArrayList<>();
    private final boolean numbers;

    /**
     * Starts a table.
     *
     * @param numbers whether columns behind the first hold numbers, which stand to the right
     * @param heads the heads of the columns
     */
    Table(boolean numbers, String... heads) {
        this.numbers = numbers;
        rows.add(heads);
    }

    /** Adds a row of as many cells as there are heads. */
    Table row(String... cells) {
        if (cells.length != rows.get(0).length) {
            throw new IllegalArgumentException(
                    "a row of " + cells.length + " cells in a table of " + rows.get(0).length);
        }
        rows.add(cells);
        return this;
    }

    /** Prints heads, a rule and rows. */
    void print(PrintStream out) {
        int[] widths = new int[rows.get(0).length];
        for (String[] row : rows) {
            for (int i = 0; i < row.length; i++) {
                widths[i] = Math.max(widths[i], row[i].length());
            }
        }
        for (int i = 0; i < rows.size(); i++) {
            out.println(line(rows.get(i), widths));
            if (i == 0) {
                int width = 0;
                for (int w : widths) {
                    width += w + 2;
                }
                out.println("-".repeat(width - 2));
            }
        }
    }

    private String line(String[] row, int[] widths) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < row.length; i++) {
            String gap = " ".repeat(widths[i] - row[i].length());
            line.append(i == 0 ? "" : "  ");
            line.append(numbers && i > 0 ? gap + row[i] : row[i] + gap);
        }
        return line.toString().stripTrailing();
    }
}
