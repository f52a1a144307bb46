package io.orbitkv.kit;

/** What can go wrong with a simulated machine: a test switches each on or off, and sees how often it happened. */
public enum Fault {
    /** A process dies and the machine lives on. */
    KILL(Group.CONTRACT),
    /** The machine loses power: what was not flushed is dropped, reordered or torn. */
    POWER_LOSS(Group.CONTRACT),
    /** What was written and not flushed is gone after a power loss. */
    DROPPED_WRITE(Group.CONTRACT),
    /** Of several writes to a page that was not flushed another one than the last survives a power loss. */
    REORDERED_WRITE(Group.CONTRACT),
    /** Of a write that a death or an error cut short, or that was not flushed, some sectors are there and others not. */
    TORN_WRITE(Group.CONTRACT),
    /** A drive is replaced by an empty one while no store has it open. */
    FOLDER_LOSS(Group.CONTRACT),
    /** A read answers EIO. */
    READ_ERROR(Group.ERROR),
    /** A write answers EIO; some of its sectors may have been written. */
    WRITE_ERROR(Group.ERROR),
    /** A write, or the creation of a file, answers ENOSPC. */
    NO_SPACE(Group.ERROR),
    /** A flush answers EIO, and makes nothing durable; nor do later ones of that process. */
    FLUSH_FAILURE(Group.ERROR),
    /** A transfer takes as long as a drive that hangs. */
    HANG(Group.ERROR),
    /** A read delivers one flipped bit. */
    ROT_ON_READ(Group.LIE),
    /** A bit of a page flips where it lies. */
    ROT_AT_REST(Group.LIE),
    /** A read delivers the pages of another place of the file. */
    MISDIRECTED_READ(Group.LIE),
    /** A write lands at another place of the file. */
    MISDIRECTED_WRITE(Group.LIE),
    /** A write is acknowledged and never happens. */
    LOST_WRITE(Group.LIE),
    /** A flush answers that all is well and makes nothing durable. */
    LYING_FLUSH(Group.LIE);

    private enum Group {
        CONTRACT,
        ERROR,
        LIE
    }

    private final Group group;

    Fault(Group group) {
        this.group = group;
    }

    /** Whether it happens to machines whose drives keep their contract and answer no errors. */
    public boolean isOfContract() {
        return group == Group.CONTRACT;
    }

    /** Whether the drive says that it failed, or says nothing for long, and harms nothing that it had acknowledged. */
    public boolean isError() {
        return group == Group.ERROR;
    }

    /** Whether the drive delivers or keeps other bytes than it was given and says nothing. */
    public boolean isLie() {
        return group == Group.LIE;
    }
}
