package io.orbitkv.cli;

import org.agrona.concurrent.UnsafeBuffer;

/** The chained keys of one request: key i from key i-1 and the number of block i. Reused; not thread-safe. */
final class PromptKeys {
    static final int KEY_BYTES = WrittenBlocks.KEY_BYTES;
}
