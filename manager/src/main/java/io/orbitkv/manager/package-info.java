/**
 * The process that several engines share: sessions over a Unix socket, leases of clients, and host memory that clients map
 * read-only. {@link io.orbitkv.manager.Manager} is the door; {@code docs/protocol.md} says what travels.
 */
package io.orbitkv.manager;
