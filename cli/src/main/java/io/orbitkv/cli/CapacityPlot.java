package io.orbitkv.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Draws shares of the compute saved over capacities on a logarithmic axis, a curve for each of several names. */
final class CapacityPlot {
    private static final int WIDTH = 960;
    private static final int HEIGHT = 560;
    private static final int LEFT = 76;
    private static final int RIGHT = 230;
    private static final int TOP = 80;
    private static final int BOTTOM = 486;
    private static final int LEGEND_STEP = 20;
    private static final String[] COLOURS = {
        "#2b2d42", "#9aa0ad", "#5b5fc7", "#8d91e0", "#2a9d8f", "#e9a23b", "#d1495b", "#c2549c", "#7a4fb0", "#3d7ebf",
        "#6a994e", "#b5651d"
    };

    private record Curve(String name, double[] shares, boolean dashed) {}

    private final String title;
    private final String subtitle;
    private final String axis;
    private final double[] capacities;
    private final String[] ticks;
    private final List<Curve> curves = new ArrayList<>();
    private double marked = Double.NaN;
    private double markedShare;

    /**
     * Starts a plot.
     *
     * @param title in large letters
     * @param subtitle beneath it
     * @param axis what the capacities are
     * @param capacities above 0, growing
     * @param ticks what stands beneath each
     */
    CapacityPlot(String title, String subtitle, String axis, double[] capacities, String[] ticks) {
        this.title = title;
        this.subtitle = subtitle;
        this.axis = axis;
        this.capacities = capacities;
        this.ticks = ticks;
    }

    /** Adds a curve; a share that is not a number is left out. */
    void add(String name, double[] shares, boolean dashed) {
        curves.add(new Curve(name, shares, dashed));
    }

    /** Rings one point. */
    void mark(double capacity, double share) {
        marked = capacity;
        markedShare = share;
    }

    /** The whole document. */
    String svg() {
        double most = 0.01;
        for (Curve curve : curves) {
            for (double share : curve.shares) {
                most = Double.isNaN(share) ? most : Math.max(most, share);
            }
        }
        double top = Math.min(1, Math.ceil(most * 20) / 20);
        Svg svg = new Svg(WIDTH, HEIGHT)
                .text(LEFT, 30, "start", 18, title)
                .text(LEFT, 50, "start", 12, subtitle)
                .turned((TOP + BOTTOM) / 2.0, "compute saved");
        for (int step = 0; step <= 5; step++) {
            double share = top * step / 5;
            svg.gridLine(LEFT, y(share, top), WIDTH - RIGHT, y(share, top));
            svg.text(LEFT - 8, y(share, top) + 4, "end", 12, String.format(Locale.ROOT, "%.0f %%", 100 * share));
        }
        double last = -100;
        for (int i = 0; i < capacities.length; i++) {
            double x = x(capacities[i]);
            svg.line(x, BOTTOM, x, BOTTOM + 5);
            if (x - last >= 52) { // where ticks are too close, one of them speaks
                svg.text(x, BOTTOM + 20, "middle", 12, ticks[i]);
                last = x;
            }
        }
        svg.line(LEFT, BOTTOM, WIDTH - RIGHT, BOTTOM);
        svg.text((LEFT + WIDTH - RIGHT) / 2.0, BOTTOM + 46, "middle", 12, axis);
        double[] x = new double[capacities.length];
        double[] y = new double[capacities.length];
        for (int c = 0; c < curves.size(); c++) {
            Curve curve = curves.get(c);
            for (int i = 0; i < x.length; i++) {
                x[i] = x(capacities[i]);
                y[i] = y(curve.shares[i], top);
            }
            String colour = COLOURS[c % COLOURS.length];
            svg.curve(x, y, colour, curve.dashed);
            svg.legend(WIDTH - RIGHT + 24, TOP + 10 + c * LEGEND_STEP, colour, curve.name);
        }
        if (!Double.isNaN(marked)) {
            svg.ring(x(marked), y(markedShare, top), 7);
        }
        return svg.end();
    }

    private double x(double capacity) {
        double first = Math.log(capacities[0]);
        double range = Math.log(capacities[capacities.length - 1]) - first;
        double share = range <= 0 ? 0.5 : (Math.log(capacity) - first) / range;
        return LEFT + 20 + (WIDTH - RIGHT - LEFT - 40) * share;
    }

    private static double y(double share, double top) {
        return BOTTOM - (BOTTOM - TOP) * share / top;
    }
}
