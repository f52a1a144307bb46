package io.orbitkv.recovery;

import io.orbitkv.nativeio.ErrorCode;

/**
 * Something that a verification found wrong.
 *
 * @param code what kind
 * @param file the file, within the data folder; with it where the store has several
 * @param segment the segment, or -1
 * @param page the page within the segment, or -1
 * @param offset the same as a place in the file, in bytes, or -1
 * @param text what is wrong
 */
public record Problem(ErrorCode code, String file, int segment, int page, long offset, String text) {
    @Override
    public String toString() {
        return code.label() + ": " + file + (segment < 0 ? "" : " segment " + segment)
                + (page < 0 ? "" : " page " + page)
                + (offset < 0 ? "" : " at byte " + offset) + ": " + text;
    }
}
