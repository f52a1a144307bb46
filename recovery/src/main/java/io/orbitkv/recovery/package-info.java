/** Opening a data folder: creation, log scan, snapshot, accounting, verification. */
package io.orbitkv.recovery;
