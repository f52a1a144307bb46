package io.orbitkv.recovery;

import io.orbitkv.index.NamespaceRow;

/**
 * A namespace and the number under which the index knows it.
 *
 * @param row what the catalog says of it
 * @param number its number in the index
 */
public record OpenedNamespace(NamespaceRow row, int number) {}
