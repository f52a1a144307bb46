package io.orbitkv.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.TypeConversionException;

/**
 * Goal: a size means what its text says, and a text that isn't one is refused with the remedy.
 * Method: sizes and non-sizes beside what they have to give.
 */
class SizesTest {
    @ParameterizedTest
    @CsvSource({
        "1,1",
        "4096,4096",
        "7b,7",
        "1kb,1024",
        "64KB,65536",
        "128mb,134217728",
        "1gb,1073741824",
        "2Tb,2199023255552",
        "8191gb,8795019280384",
        "8388607tb,9223370937343148032"
    })
    void readsPowersOf1024(String text, long bytes) {
        assertEquals(bytes, Sizes.parse(text));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"", "0", "0kb", "-1", "1.5gb", "12q", "gb", "1 gb", "1kib", "8388608tb", "1234567890123456789"})
    void refusesWhatIsNoSize(String text) {
        TypeConversionException e = assertThrows(TypeConversionException.class, () -> Sizes.parse(text));
        assertTrue(e.getMessage().contains("'" + text + "'"), e.getMessage());
    }

    @Test
    void showsThreeDigits() {
        assertEquals("512 B", Sizes.text(512));
        assertEquals("64.0 KiB", Sizes.text(64 << 10));
        assertEquals("1.17 GiB", Sizes.text(1200L << 20));
        assertEquals("1.00 MiB", Sizes.text((1 << 20) - 1));
        assertEquals("300 MiB", Sizes.text(300L << 20));
    }
}
