package io.orbitkv.tiers;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Goal: nobody takes lost blocks for written, and a loss does not fail every sync to come. */
class LostPositionsTest {
    private final LostPositions lost = new LostPositions();

    @Test
    void aLossIsToldAlwaysForItsOwnPositionsAndOnceForLaterOnes() {
        assertFalse(lost.tell(Long.MAX_VALUE - 1));
        lost.add(10, 12);
        lost.add(20, 22);
        assertFalse(lost.tell(9), "what was written before is not lost");
        assertTrue(lost.tell(15), "between two losses of one outage");
        assertTrue(lost.tell(100), "not told yet");
        assertFalse(lost.tell(100), "told");
        assertTrue(lost.tell(21));
        assertTrue(lost.tell(22));
        lost.add(30, 31);
        assertTrue(lost.tell(50), "another outage");
        assertFalse(lost.tell(50));
        assertFalse(lost.tell(29));
        lost.add(41, 40);
        assertFalse(lost.tell(50), "nothing was lost");
    }
}
