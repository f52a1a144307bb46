package io.orbitkv.index;

import java.util.stream.LongStream;

/** Goal and method as its parent's, with Chronicle Map as the directory. */
class PrefixIndexOnChronicleTest extends PrefixIndexTest {
    static LongStream seeds() {
        return PrefixIndexTest.seeds().limit(6);
    }

    @Override
    DirectoryKind kind() {
        return DirectoryKind.CHRONICLE;
    }
}
