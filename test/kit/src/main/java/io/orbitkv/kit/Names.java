package io.orbitkv.kit;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;

/**
 * The names on a simulated drive: what they are now, what they would be after a power loss, and the changes between,
 * in order. A folder is a name without content. Guarded by the drive.
 */
final class Names {
    /** What was done to a name. */
    private enum Change {
        CREATE,
        MAKE_FOLDER,
        RENAME,
        UNLINK
    }

    /** One change of the folder that the name lies in; {@code to} is set for a rename only. */
    private record NameChange(Change change, String folder, String name, String to, FileContent content) {}

    /** A name of a file or, with null content, of a folder. */
    private record Target(FileContent content) {}

    private TreeMap<String, Target> now = new TreeMap<>();
    private final TreeMap<String, Target> durable = new TreeMap<>();
    private final List<NameChange> notSynced = new ArrayList<>();

    static String folderOf(String name) {
        int slash = name.lastIndexOf('/');
        return slash < 0 ? "" : name.substring(0, slash);
    }

    boolean exists(String name) {
        return name.isEmpty() || now.containsKey(name);
    }

    boolean isFolder(String name) {
        return name.isEmpty() || (now.containsKey(name) && now.get(name).content == null);
    }

    /** The file's content, or null. */
    FileContent file(String name) {
        Target target = now.get(name);
        return target == null ? null : target.content;
    }

    List<String> list(String folder) {
        List<String> names = new ArrayList<>();
        for (String name : now.keySet()) {
            if (folderOf(name).equals(folder)) {
                names.add(name.substring(folder.isEmpty() ? 0 : folder.length() + 1));
            }
        }
        return names;
    }

    long bytes(String name) {
        long sum = 0;
        for (var named : now.entrySet()) {
            boolean below = name.isEmpty()
                    || named.getKey().equals(name)
                    || named.getKey().startsWith(name + "/");
            if (below && named.getValue().content != null) {
                sum += named.getValue().content.allocatedBytes();
            }
        }
        return sum;
    }

    /** The files that have a name. */
    Set<FileContent> linked() {
        Set<FileContent> linked = Collections.newSetFromMap(new IdentityHashMap<>());
        now.values().forEach(target -> linked.add(target.content));
        return linked;
    }

    /** The files that have a name now or may have one again after a power loss. */
    Set<FileContent> linkedNowOrAfterPowerLoss() {
        Set<FileContent> linked = linked();
        durable.values().forEach(target -> linked.add(target.content));
        notSynced.forEach(change -> linked.add(change.content));
        return linked;
    }

    void create(String name, FileContent content) {
        change(new NameChange(Change.CREATE, folderOf(name), name, "", content));
    }

    void makeFolder(String name) {
        change(new NameChange(Change.MAKE_FOLDER, folderOf(name), name, "", null));
    }

    void rename(String from, String to) {
        change(new NameChange(Change.RENAME, folderOf(to), from, to, file(from)));
    }

    void unlink(String name) {
        change(new NameChange(Change.UNLINK, folderOf(name), name, "", null));
    }

    /** The changes of one folder become durable. */
    void sync(String folder) {
        for (Iterator<NameChange> changes = notSynced.iterator(); changes.hasNext(); ) {
            NameChange change = changes.next();
            if (change.folder.equals(folder)) {
                apply(change, durable);
                changes.remove();
            }
        }
    }

    /** Of the changes that were not synced a first part survives, in order: that is what a journal does. */
    void losePower(Gen gen) {
        int survive = gen.between(0, notSynced.size());
        for (int i = 0; i < survive; i++) {
            apply(notSynced.get(i), durable);
        }
        notSynced.clear();
        durable.keySet().removeIf(name -> hasLostFolder(name));
        now = new TreeMap<>(durable);
    }

    /** Everything below a folder goes at once and for good, but for some folders in it. */
    void erase(String folder, Collection<String> but) {
        Predicate<String> goes = name -> folder.isEmpty()
                ? but.stream().noneMatch(kept -> name.equals(kept) || name.startsWith(kept + "/"))
                : name.startsWith(folder + "/");
        now.keySet().removeIf(goes);
        durable.keySet().removeIf(goes);
        notSynced.removeIf(change -> goes.test(change.name));
    }

    private boolean hasLostFolder(String name) {
        for (String folder = folderOf(name); !folder.isEmpty(); folder = folderOf(folder)) {
            if (!durable.containsKey(folder)) {
                return true;
            }
        }
        return false;
    }

    private void change(NameChange change) {
        apply(change, now);
        notSynced.add(change);
    }

    private static void apply(NameChange change, TreeMap<String, Target> names) {
        switch (change.change) {
            case CREATE, MAKE_FOLDER -> names.put(change.name, new Target(change.content));
            case UNLINK -> names.remove(change.name);
            case RENAME -> {
                names.remove(change.name);
                names.put(change.to, new Target(change.content));
            }
        }
    }
}
