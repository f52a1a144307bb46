package io.orbitkv.nativeio;

/**
 * Who is at the other end of a Unix socket, as the kernel says: who it was when the connection was made.
 *
 * @param pid its process
 * @param uid its user
 * @param gid its group
 */
public record PeerCredentials(int pid, int uid, int gid) {
    /** The user that this process acts as. */
    public static int ownUid() {
        return LibC.geteuid();
    }
}
