package io.orbitkv.cli;

import java.util.Arrays;
import java.util.Locale;

/**
 * Draws a demo or a replay as SVG, two panels over the requests: hit rate by tier (stacked, averaged over a window) and the median
 * latencies of query, restore and save on a logarithmic scale. A restart is a line through both.
 */
final class ReplayPlot {
    private static final int WIDTH = 960;
    private static final int HEIGHT = 620;
    private static final int LEFT = 76;
    private static final int RIGHT = 24;
    private static final int UPPER_TOP = 86;
    private static final int UPPER_BOTTOM = 310;
    private static final int LOWER_TOP = 372;
    private static final int LOWER_BOTTOM = 548;
    private static final int POINTS_MAX = 160;
    private static final String HOST_COLOUR = "#2a9d8f";
    private static final String NVME_COLOUR = "#e9a23b";
    private static final String QUERY_COLOUR = "#5b5fc7";
    private static final String SAVE_COLOUR = "#c2549c";
    private static final String RESTORE_COLOUR = "#d1495b";
    private static final String INK = "#2b2d42";

    private final Series series;
    private final int points;
    private final StringBuilder svg = new StringBuilder(1 << 15);

    private ReplayPlot(Series series) {
        this.series = series;
        points = Math.max(1, Math.min(POINTS_MAX, series.size() / 4));
    }

    /**
     * The whole document.
     *
     * @param title the heading
     * @param what what was run, and on what, in a line
     * @param restart what the line of the restart is called
     */
    static String svg(Series series, String title, String what, String restart) {
        return new ReplayPlot(series).draw(title, what, restart);
    }

    /** What was run on what, in a line. */
    static String what(String requests, Series series, ChildOptions options) {
        return requests + " · " + series.size() + " requests · blocks of " + Sizes.text(options.blockBytes) + " · pool "
                + Sizes.text(options.poolBytes) + " · cap " + Sizes.text(options.capBytes);
    }

    private String draw(String title, String what, String restart) {
        svg.append("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + WIDTH + "\" height=\"" + HEIGHT
                + "\" viewBox=\"0 0 " + WIDTH + " " + HEIGHT + "\" font-family=\"system-ui, sans-serif\""
                + " font-size=\"12\" fill=\"" + INK + "\">\n");
        svg.append("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        text(LEFT, 30, "start", 18, title);
        text(LEFT, 50, "start", 12, what);
        hitRates();
        latencies();
        axis();
        restart(restart);
        return svg.append("</svg>\n").toString();
    }

    private void hitRates() {
        for (int percent = 0; percent <= 100; percent += 25) {
            double y = upperY(percent / 100.0);
            grid(y);
            text(LEFT - 8, y + 4, "end", 12, percent + " %");
        }
        turned((UPPER_TOP + UPPER_BOTTOM) / 2, "hit rate (blocks)");
        double[] host = new double[points];
        double[] both = new double[points];
        for (int point = 0; point < points; point++) {
            long blocks = 0;
            long hostHits = 0;
            long hits = 0;
            for (int request = first(point); request < first(point + 1); request++) {
                blocks += series.blocks(request);
                hostHits += series.hostHits(request);
                hits += series.hostHits(request) + series.nvmeHits(request);
            }
            host[point] = blocks == 0 ? 0 : (double) hostHits / blocks;
            both[point] = blocks == 0 ? 0 : (double) hits / blocks;
        }
        area(new double[points], host, HOST_COLOUR);
        area(host, both, NVME_COLOUR);
        legend(WIDTH - RIGHT - 250, UPPER_TOP - 16, HOST_COLOUR, "host memory");
        legend(WIDTH - RIGHT - 120, UPPER_TOP - 16, NVME_COLOUR, "NVMe");
    }

    private void area(double[] lower, double[] upper, String colour) {
        svg.append("<path fill=\"" + colour + "\" fill-opacity=\"0.85\" d=\"M");
        for (int point = 0; point < points; point++) {
            at(pointX(point), upperY(upper[point])).append(" L");
        }
        for (int point = points - 1; point >= 0; point--) {
            at(pointX(point), upperY(lower[point])).append(point == 0 ? "" : " L");
        }
        svg.append(" Z\"/>\n");
    }

    private void latencies() {
        double[][] lines = new double[3][points];
        double most = 10;
        for (int point = 0; point < points; point++) {
            float[][] samples = samples(first(point), first(point + 1));
            for (int line = 0; line < lines.length; line++) {
                lines[line][point] = median(samples[line]);
                most = Math.max(most, lines[line][point]);
            }
        }
        int decades = (int) Math.ceil(Math.log10(most));
        for (int decade = 0; decade <= decades; decade++) {
            double y = lowerY(Math.pow(10, decade), decades);
            grid(y);
            text(LEFT - 8, y + 4, "end", 12, micros(decade));
        }
        turned((LOWER_TOP + LOWER_BOTTOM) / 2, "median of a request");
        String[] colours = {QUERY_COLOUR, RESTORE_COLOUR, SAVE_COLOUR};
        String[] names = {"query", "restore", "save"};
        for (int line = 0; line < lines.length; line++) {
            curve(lines[line], decades, colours[line]);
            legend(WIDTH - RIGHT - 290 + line * 100, LOWER_TOP - 16, colours[line], names[line]);
        }
    }

    /** The latencies of some requests by kind, those that did none of a kind left out. */
    private float[][] samples(int from, int to) {
        float[][] samples = new float[3][to - from];
        for (int request = from; request < to; request++) {
            samples[0][request - from] = series.queryMicros(request);
            samples[1][request - from] = series.restoreMicros(request);
            samples[2][request - from] = series.saveMicros(request);
        }
        return samples;
    }

    private static double median(float[] samples) {
        Arrays.sort(samples);
        int zeros = 0;
        while (zeros < samples.length && samples[zeros] <= 0) {
            zeros++;
        }
        return zeros == samples.length ? Double.NaN : samples[(zeros + samples.length) / 2];
    }

    private void curve(double[] values, int decades, String colour) {
        boolean drawing = false;
        svg.append("<path fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"1.8\" stroke-linejoin=\"round\" d=\"");
        for (int point = 0; point < points; point++) {
            if (Double.isNaN(values[point])) {
                drawing = false;
                continue;
            }
            svg.append(drawing ? " L" : " M");
            at(pointX(point), lowerY(values[point], decades));
            drawing = true;
        }
        if (svg.charAt(svg.length() - 1) == '"') {
            svg.append("M0,0"); // a path without a point draws nothing and stays valid
        }
        svg.append("\"/>\n");
    }

    private void axis() {
        int step = step(series.size());
        for (int request = 0; request <= series.size(); request += step) {
            text(x(request), LOWER_BOTTOM + 20, "middle", 12, String.format(Locale.ROOT, "%,d", request));
            line(x(request), LOWER_BOTTOM, x(request), LOWER_BOTTOM + 5, INK, "");
            line(x(request), UPPER_BOTTOM, x(request), UPPER_BOTTOM + 5, INK, "");
        }
        line(LEFT, LOWER_BOTTOM, WIDTH - RIGHT, LOWER_BOTTOM, INK, "");
        line(LEFT, UPPER_BOTTOM, WIDTH - RIGHT, UPPER_BOTTOM, INK, "");
        text((LEFT + WIDTH - RIGHT) / 2.0, LOWER_BOTTOM + 46, "middle", 12, "requests");
    }

    /** A round number of requests between ticks, so that about eight ticks fit. */
    private static int step(int requests) {
        int step = 1;
        for (int factor = 0; requests / step > 10; factor++) {
            step = factor % 3 == 1 ? step / 2 * 5 : step * 2; // 1, 2, 5, 10, 20, 50, ...
        }
        return step;
    }

    private void restart(String name) {
        if (series.restartedAt() < 0) {
            return;
        }
        double x = x(series.restartedAt());
        line(x, UPPER_TOP, x, LOWER_BOTTOM, INK, " stroke-dasharray=\"5 4\"");
        boolean left = x > WIDTH - RIGHT - 150;
        text(left ? x - 6 : x + 6, UPPER_BOTTOM + 30, left ? "end" : "start", 12, name);
    }

    private int first(int point) {
        return (int) ((long) series.size() * point / points);
    }

    private double pointX(int point) {
        return points == 1 ? LEFT : LEFT + (double) (WIDTH - LEFT - RIGHT) * point / (points - 1);
    }

    private double x(int request) {
        return LEFT + (double) (WIDTH - LEFT - RIGHT) * request / Math.max(1, series.size());
    }

    private static double upperY(double fraction) {
        return UPPER_BOTTOM - (UPPER_BOTTOM - UPPER_TOP) * fraction;
    }

    private static double lowerY(double micros, int decades) {
        return LOWER_BOTTOM - (LOWER_BOTTOM - LOWER_TOP) * Math.log10(Math.max(1, micros)) / decades;
    }

    private static String micros(int decade) {
        String[] names = {"1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"};
        return names[Math.min(decade, names.length - 1)];
    }

    private void grid(double y) {
        line(LEFT, y, WIDTH - RIGHT, y, "#d9dce3", "");
    }

    private void legend(double x, double y, String colour, String name) {
        svg.append("<rect x=\"" + number(x) + "\" y=\"" + number(y - 10)
                + "\" width=\"12\" height=\"12\" rx=\"2\" fill=\"" + colour + "\"/>\n");
        text(x + 18, y, "start", 12, name);
    }

    private void line(double x1, double y1, double x2, double y2, String colour, String more) {
        svg.append("<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\""
                + number(y2) + "\" stroke=\"" + colour + "\"" + more + "/>\n");
    }

    private void turned(double y, String words) {
        svg.append("<text transform=\"translate(20 " + number(y) + ") rotate(-90)\" text-anchor=\"middle\">"
                + escape(words) + "</text>\n");
    }

    private void text(double x, double y, String anchor, int size, String words) {
        svg.append("<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" font-size=\""
                + size + "\">" + escape(words) + "</text>\n");
    }

    private StringBuilder at(double x, double y) {
        return svg.append(number(x)).append(',').append(number(y));
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }

    private static String escape(String words) {
        return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }
}
