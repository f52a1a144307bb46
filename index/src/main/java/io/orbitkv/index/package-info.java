/** Keys, families, namespaces, the prefix index and the catalog: who a block is and where, not what lies there. */
package io.orbitkv.index;
