package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.orbitkv.index.SegmentRow;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Goal: rows of segments that the cap takes and gives back prove which use has ended, whatever life it ended in. */
class SegmentBookTest {
    @Test
    void theUseThatEndedInAnEarlierLifeStays() {
        SegmentBook book = new SegmentBook(4, List.of(new SegmentRow(2, 77, SegmentRow.State.ABSENT, 0, 0, 0)));
        book.notePresent(2);
        assertEquals(List.of(new SegmentRow(2, 77, SegmentRow.State.FREE, 0, 0, 0)), book.takeChanges());
        book.noteAbsent(2);
        assertEquals(List.of(new SegmentRow(2, 77, SegmentRow.State.ABSENT, 0, 0, 0)), book.takeChanges());
    }
}
