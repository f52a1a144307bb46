/** Benchmarks of the store, each beside the floor that it is compared with, in one run on one machine. */
package io.orbitkv.bench;
