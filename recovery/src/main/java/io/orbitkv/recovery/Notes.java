package io.orbitkv.recovery;

import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Things that a person may want to know of an opening: logged, and the first of them kept. */
final class Notes {
    private static final Logger LOG = LoggerFactory.getLogger(Notes.class);

    /** A damaged drive can have thousands; the first few tell the story. */
    private static final int NOTES_MAX = 50;

    private final String path;
    private final List<String> notes = new ArrayList<>();
    private long left;

    Notes(String path) {
        this.path = path;
    }

    void add(String note) {
        if (notes.size() < NOTES_MAX) {
            notes.add(note);
            LOG.warn("{}: {}", path, note);
        } else {
            left++;
        }
    }

    List<String> list() {
        if (left > 0) {
            notes.add("and " + left + " more");
            LOG.warn("{}: and {} more", path, left);
            left = 0;
        }
        return List.copyOf(notes);
    }
}
