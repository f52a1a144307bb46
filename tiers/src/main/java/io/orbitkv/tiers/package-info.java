/** Segments, the log on a drive and its disk format, extents, tiers: a key is 32 opaque bytes here. */
package io.orbitkv.tiers;
