package io.orbitkv.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.orbitkv.nativeio.OrbitKvException;
import org.junit.jupiter.api.Test;

/** Goal: fio's report is read right, and one that says nothing is refused. Method: reports as fio 3.33 writes them, cut short. */
class FioTest {
    private static final String REPORT = """
            {
              "fio version" : "fio-3.33",
              "jobs" : [
                {
                  "jobname" : "orbitkv",
                  "read" : {
                    "io_bytes" : 1048576,
                    "bw_bytes" : 52428800,
                    "runtime" : 20
                  },
                  "write" : {
                    "io_bytes" : 4194304,
                    "bw_bytes" : 41943040,
                    "runtime" : 100
                  },
                  "usr_cpu" : 10.500000,
                  "sys_cpu" : 4.500000
                }
              ]
            }
            """;

    @Test
    void readsTheSectionOfTheWork() {
        Fio.Run read = Fio.parse(REPORT, Fio.Work.RANDOM_READ, 7, 8);
        assertEquals(new Fio.Run(1_048_576, 20e6, 0.15 * 20e6, 7, 8), read);
        Fio.Run write = Fio.parse(REPORT, Fio.Work.WRITE, 0, 8);
        assertEquals(4_194_304, write.bytes());
        assertEquals(100e6, write.nanos());
    }

    @Test
    void refusesAReportWithoutBytes() {
        String nothing = REPORT.replace("\"io_bytes\" : 1048576", "\"io_bytes\" : 0");
        OrbitKvException e = assertThrows(OrbitKvException.class, () -> Fio.parse(nothing, Fio.Work.READ, 0, 8));
        assertTrue(e.getMessage().contains("take more --bytes"), e.getMessage());
        assertThrows(OrbitKvException.class, () -> Fio.parse("", Fio.Work.READ, 0, 8));
    }
}
