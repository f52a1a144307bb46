package io.orbitkv.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import org.junit.jupiter.api.function.Executable;

/** What a refusal has to be: one of our exceptions, with the right code, whose message says what and what to do. */
final class Refusals {
    private Refusals() {}

    static OrbitKvException refused(ErrorCode code, Executable call, String... words) {
        OrbitKvException refusal = assertThrows(OrbitKvException.class, call);
        assertEquals(code, refusal.code(), refusal::toString);
        assertTrue(refusal.getMessage().startsWith(code.label() + ": "), refusal::getMessage);
        for (String word : words) {
            assertTrue(refusal.getMessage().contains(word), () -> "'" + word + "' is not in: " + refusal.getMessage());
        }
        return refusal;
    }

    static void nullRefused(String name, Executable call) {
        NullPointerException refusal = assertThrows(NullPointerException.class, call);
        assertEquals(name, refusal.getMessage());
    }
}
