/** Benchmarks: each asks one question and names the floor that it is compared with. */
package io.orbitkv.bench;
