/** Reads request traces, line by line and strictly: the one place that knows their formats ({@code docs/traces.md}). */
package io.orbitkv.bench.trace;
