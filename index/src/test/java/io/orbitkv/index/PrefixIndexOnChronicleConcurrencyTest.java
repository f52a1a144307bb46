package io.orbitkv.index;

/** Goal and method as its parent's, with Chronicle Map as the directory. */
class PrefixIndexOnChronicleConcurrencyTest extends PrefixIndexConcurrencyTest {
    @Override
    DirectoryKind kind() {
        return DirectoryKind.CHRONICLE;
    }
}
