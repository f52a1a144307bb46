package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.StringReader;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

/**
 * Goal: the plot is XML that a browser takes, whatever was measured.
 * Method: parse plots of few, many and odd requests, and look for what must be in them.
 */
class ReplayPlotTest {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7, 12_031})
    void isWellFormed(int requests) throws Exception {
        Series series = new Series();
        for (int i = 0; i < requests; i++) {
            if (i == requests / 2) {
                series.markRestart();
            }
            series.add(20, i % 7, i % 13, 1_000L + i, i % 3 == 0 ? 0 : 80_000, i % 5 == 0 ? 0 : 3_000_000);
        }
        Document svg = parse(ReplayPlot.svg(series, "a title", "a trace", "kill -9"));
        assertEquals("svg", svg.getDocumentElement().getTagName());
        assertEquals(5, svg.getElementsByTagName("path").getLength(), "two areas and three curves");
        assertTrue(svg.getDocumentElement().getTextContent().contains("kill -9"));
    }

    @Test
    void escapesNames() throws Exception {
        Series series = new Series();
        series.add(1, 0, 0, 1, 0, 0);
        assertTrue(parse(ReplayPlot.svg(series, "a title", "a<b>&c.jsonl", ""))
                .getDocumentElement()
                .getTextContent()
                .contains("a<b>&c.jsonl"));
    }

    private static Document parse(String text) throws Exception {
        return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new InputSource(new StringReader(text)));
    }
}
