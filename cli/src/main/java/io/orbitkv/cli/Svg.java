package io.orbitkv.cli;

import java.util.Locale;

/** A drawing: shapes and words on white paper. Not thread-safe. */
final class Svg {
    static final String INK = "#2b2d42";
    private static final String GRID = "#d9dce3";

    private final StringBuilder out = new StringBuilder(1 << 14);

    Svg(int width, int height) {
        out.append("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height
                + "\" viewBox=\"0 0 " + width + " " + height + "\" font-family=\"system-ui, sans-serif\""
                + " font-size=\"12\" fill=\"" + INK + "\">\n");
        out.append("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    }

    Svg text(double x, double y, String anchor, int size, String words) {
        out.append("<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" font-size=\""
                + size + "\">" + escape(words) + "</text>\n");
        return this;
    }

    /** Words from bottom to top, centred at a height, at the left edge. */
    Svg turned(double y, String words) {
        out.append("<text transform=\"translate(20 " + number(y) + ") rotate(-90)\" text-anchor=\"middle\">"
                + escape(words) + "</text>\n");
        return this;
    }

    Svg line(double x1, double y1, double x2, double y2) {
        return line(x1, y1, x2, y2, INK);
    }

    Svg gridLine(double x1, double y1, double x2, double y2) {
        return line(x1, y1, x2, y2, GRID);
    }

    private Svg line(double x1, double y1, double x2, double y2, String colour) {
        out.append("<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\""
                + number(y2) + "\" stroke=\"" + colour + "\"/>\n");
        return this;
    }

    /** A curve through points, each with a dot; points that are not numbers are left out. */
    Svg curve(double[] x, double[] y, String colour, boolean dashed) {
        StringBuilder path = new StringBuilder();
        for (int i = 0; i < x.length; i++) {
            if (Double.isNaN(y[i])) {
                continue;
            }
            path.append(path.length() == 0 ? "M" : " L")
                    .append(number(x[i]))
                    .append(',')
                    .append(number(y[i]));
            dot(x[i], y[i], 2.5, colour);
        }
        if (path.length() > 0) {
            out.append("<path fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"1.8\" stroke-linejoin=\"round\""
                    + (dashed ? " stroke-dasharray=\"5 4\"" : "") + " d=\"" + path + "\"/>\n");
        }
        return this;
    }

    Svg dot(double x, double y, double radius, String colour) {
        out.append("<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius) + "\" fill=\""
                + colour + "\"/>\n");
        return this;
    }

    Svg ring(double x, double y, double radius) {
        out.append("<circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"" + number(radius)
                + "\" fill=\"none\" stroke=\"" + INK + "\" stroke-width=\"2\"/>\n");
        return this;
    }

    Svg legend(double x, double y, String colour, String name) {
        out.append("<rect x=\"" + number(x) + "\" y=\"" + number(y - 10)
                + "\" width=\"12\" height=\"12\" rx=\"2\" fill=\"" + colour + "\"/>\n");
        return text(x + 18, y, "start", 12, name);
    }

    /** The whole document. */
    String end() {
        return out + "</svg>\n";
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }

    private static String escape(String words) {
        return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }
}
