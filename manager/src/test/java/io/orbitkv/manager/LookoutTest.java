package io.orbitkv.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

/** Goal: looks that pay go on, those in vain are rare. Method: requests that come at once, then never in time. */
class LookoutTest {
    @Test
    void looksInVainAreRare() {
        assumeTrue(Runtime.getRuntime().availableProcessors() > 1, "skipped on a single processor, where nobody looks");
        Lookout lookout = new Lookout();
        assertEquals(1_000, looks(lookout, 1_000, true));
        assertEquals(10, looks(lookout, 10 * (Lookout.REST + 1), false));
        looks(lookout, Lookout.REST, true);
        assertEquals(1_000, looks(lookout, 1_000, true), "once they come in a row again, it looks again");
    }

    private static int looks(Lookout lookout, int requests, boolean found) {
        int looks = 0;
        for (int i = 0; i < requests; i++) {
            if (lookout.pays()) {
                looks++;
                lookout.paid(found);
            }
        }
        return looks;
    }
}
