package io.orbitkv.kit;

/**
 * A page that a drive has harmed: it holds, or once delivered, other bytes than were written there, and no error was
 * answered. A write that goes well makes the page whole again.
 *
 * @param page within its file
 * @param fault what happened to it
 * @param was the first eight bytes that belong there, little-endian: they tell what kind of page it is
 * @param first the first eight bytes that stood there afterwards
 */
public record Harm(int page, Fault fault, long was, long first) {}
