/**
 * Simulates caches on the keys of a trace: every policy beside Belady, one tier or two, at any capacity.
 *
 * <p>Keys only, in primitive arrays: a trace of 300,000 blocks under one policy at one capacity takes some 20 ms.
 */
package io.orbitkv.bench.simulate;
