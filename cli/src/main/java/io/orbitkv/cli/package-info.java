/** The command line: one door to demo, replay, plan, put, get, verify, doctor and bench. The only place that knows picocli. */
package io.orbitkv.cli;
