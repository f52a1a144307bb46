package io.orbitkv.bench.trace;

/** How a trace is written; {@code docs/traces.md} describes each. */
public enum TraceFormat {
    /** One JSON object a line: {@code timestamp}, {@code input_length}, {@code output_length}, {@code hash_ids}. */
    MOONCAKE,
    /** Three columns: {@code time,tokens,hashes}, with spaces between the hashes of a line. */
    CSV
}
