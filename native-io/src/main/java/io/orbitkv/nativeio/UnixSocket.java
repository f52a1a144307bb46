package io.orbitkv.nativeio;

import com.sun.jna.Native;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A Unix stream socket that can pass descriptors, which those of the JDK can't.
 *
 * <p>One thread receives and one sends at a time; {@link #shutdown} may come from any thread and wakes both. Only the
 * thread that receives closes, so that a descriptor is never reused under a call.
 */
public final class UnixSocket implements AutoCloseable {
    /** Most bytes of a path, the terminator left out. */
    public static final int PATH_BYTES_MAX = 107;

    /** Most descriptors of one message. */
    public static final int DESCRIPTORS_MAX = 8;

    private static final int SOCKADDR_BYTES = 110;
    private static final int OWNER_ONLY = 0600;

    // struct msghdr, one struct iovec and the control message, back to back.
    private static final int MSGHDR_BYTES = 56;
    private static final int MSG_IOV = 16;
    private static final int MSG_IOVLEN = 24;
    private static final int MSG_CONTROL = 32;
    private static final int MSG_CONTROLLEN = 40;
    private static final int IOVEC = MSGHDR_BYTES;
    private static final int CONTROL = IOVEC + 16;
    private static final int CMSG_LEVEL = 8;
    private static final int CMSG_TYPE = 12;
    private static final int CMSG_DATA = 16;
    private static final int CONTROL_BYTES_MAX = CMSG_DATA + DESCRIPTORS_MAX * Integer.BYTES;

    private final int fd;
    private final String name;

    /** Guarded by this object, so that a shutdown never meets a descriptor that was reused. */
    private boolean closed;

    private UnixSocket(int fd, String name) {
        this.fd = fd;
        this.name = name;
    }

    /**
     * Makes a socket that peers of this user can connect to.
     *
     * @param path where; nothing may be there
     * @param backlog connections that may wait to be accepted
     * @return the socket, owned by the caller, who also removes the path
     * @throws OrbitKvException {@link ErrorCode#SOCKET} where it can't be made
     */
    public static UnixSocket listen(String path, int backlog) {
        UnixSocket socket = make(path);
        boolean good = false;
        try (MemoryRegion address = sockaddr(path)) {
            socket.require("bind", LibC.bind(socket.fd, address.address(0, SOCKADDR_BYTES), SOCKADDR_BYTES));
            // Nobody connects before listen: the mode counts from the first moment.
            socket.require("chmod", LibC.chmod(path, OWNER_ONLY));
            socket.require("listen", LibC.listen(socket.fd, backlog));
            good = true;
            return socket;
        } finally {
            if (!good) {
                socket.close();
            }
        }
    }

    /**
     * Connects to a socket.
     *
     * @param path where it is
     * @return the connection, owned by the caller; null where nobody listens
     * @throws OrbitKvException {@link ErrorCode#SOCKET} where it can't be reached for another reason
     */
    public static UnixSocket connect(String path) {
        UnixSocket socket = make(path);
        boolean good = false;
        try (MemoryRegion address = sockaddr(path)) {
            if (LibC.connect(socket.fd, address.address(0, SOCKADDR_BYTES), SOCKADDR_BYTES) < 0) {
                int errno = Native.getLastError();
                if (errno == LibC.ECONNREFUSED || errno == LibC.ENOENT) {
                    return null;
                }
                throw socket.failed("connect", errno);
            }
            good = true;
            return socket;
        } finally {
            if (!good) {
                socket.close();
            }
        }
    }

    private static UnixSocket make(String path) {
        int bytes = path.getBytes(StandardCharsets.UTF_8).length;
        if (bytes == 0 || bytes > PATH_BYTES_MAX) {
            throw new OrbitKvException(
                    ErrorCode.SOCKET,
                    "the path of a socket has 1 to " + PATH_BYTES_MAX + " bytes, got " + bytes + ": " + path
                            + "; choose a shorter one");
        }
        int fd = LibC.socket(LibC.AF_UNIX, LibC.SOCK_STREAM | LibC.SOCK_CLOEXEC, 0);
        if (fd < 0) {
            throw new OrbitKvException(ErrorCode.SOCKET, "cannot make a socket: " + Errno.text(Native.getLastError()));
        }
        return new UnixSocket(fd, path);
    }

    private static MemoryRegion sockaddr(String path) {
        MemoryRegion address = scratch();
        byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
        address.putShort(0, (short) LibC.AF_UNIX);
        address.copyFrom(Short.BYTES, bytes, 0, bytes.length);
        return address;
    }

    private static MemoryRegion scratch() {
        return MemoryRegion.anonymous(MemoryRegion.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.SESSION);
    }

    /** Waits for a peer; null once the socket is shut down. */
    public UnixSocket accept() {
        while (true) {
            int peer = LibC.accept4(fd, 0, 0, LibC.SOCK_CLOEXEC);
            if (peer >= 0) {
                return new UnixSocket(peer, name);
            }
            int errno = Native.getLastError();
            if (errno == LibC.EINVAL || errno == LibC.EBADF) {
                return null; // shut down
            }
            if (errno != LibC.EINTR) {
                throw failed("accept", errno);
            }
        }
    }

    /** Who connected. */
    public PeerCredentials peer() {
        byte[] ucred = new byte[3 * Integer.BYTES];
        require("getsockopt", LibC.getsockopt(fd, LibC.SOL_SOCKET, LibC.SO_PEERCRED, ucred, new int[] {ucred.length}));
        ByteBuffer fields = ByteBuffer.wrap(ucred).order(ByteOrder.LITTLE_ENDIAN);
        return new PeerCredentials(fields.getInt(0), fields.getInt(4), fields.getInt(8));
    }

    /**
     * Bounds how long a send waits for a peer that doesn't read, and a receive for one that says nothing.
     *
     * @param sendMillis longest wait of a send, in milliseconds; 0: no bound
     * @param receiveMillis longest wait of a receive, in milliseconds; 0: no bound
     */
    public void timeouts(long sendMillis, long receiveMillis) {
        require("setsockopt", setTimeout(LibC.SO_SNDTIMEO, sendMillis));
        require("setsockopt", setTimeout(LibC.SO_RCVTIMEO, receiveMillis));
    }

    private int setTimeout(int option, long millis) {
        byte[] timeval = ByteBuffer.allocate(2 * Long.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putLong(millis / 1000)
                .putLong(millis % 1000 * 1000)
                .array();
        return LibC.setsockopt(fd, LibC.SOL_SOCKET, option, timeval, timeval.length);
    }

    /**
     * Receives some bytes.
     *
     * @return how many; 0 at the end of the connection; -1 where {@link #timeouts} ended the wait
     */
    public int receive(MemoryRegion into, long offset, int length) {
        return receive(into, offset, length, 0);
    }

    /**
     * Receives bytes that are there, and never waits.
     *
     * @return how many; 0 at the end of the connection; -1 where there are none yet
     */
    public int receiveNow(MemoryRegion into, long offset, int length) {
        return receive(into, offset, length, LibC.MSG_DONTWAIT);
    }

    private int receive(MemoryRegion into, long offset, int length, int flags) {
        while (true) {
            long got = LibC.recv(fd, into.address(offset, length), length, flags);
            if (got >= 0) {
                return (int) got;
            }
            int errno = Native.getLastError();
            if (errno == LibC.EAGAIN) {
                return -1;
            }
            if (errno != LibC.EINTR) {
                return 0; // reset: the connection is at its end
            }
        }
    }

    /**
     * Sends all of a range.
     *
     * @return false where the peer is gone, or does not read: then a part may have been sent, and the connection is worth
     *     nothing any more
     */
    public boolean send(MemoryRegion from, long offset, int length) {
        int sent = 0;
        while (sent < length) {
            long put = LibC.send(fd, from.address(offset + sent, length - sent), length - sent, LibC.MSG_NOSIGNAL);
            if (put < 0 && Native.getLastError() != LibC.EINTR) {
                return false;
            }
            sent += Math.max(0, (int) put);
        }
        return true;
    }

    /**
     * Sends a range with descriptors, which arrive with its first byte as descriptors of the peer's own.
     *
     * @return false as with {@link #send}
     */
    public boolean sendDescriptors(MemoryRegion from, long offset, int length, int... descriptors) {
        if (descriptors.length > DESCRIPTORS_MAX) {
            throw new OrbitKvException(
                    ErrorCode.BAD_ARGUMENT,
                    "a message passes " + DESCRIPTORS_MAX + " descriptors at most, got " + descriptors.length);
        }
        try (MemoryRegion message = scratch()) {
            int control = CMSG_DATA + descriptors.length * Integer.BYTES;
            aim(message, from.address(offset, length), length, control);
            message.putLong(CONTROL, control);
            message.putInt(CONTROL + CMSG_LEVEL, LibC.SOL_SOCKET);
            message.putInt(CONTROL + CMSG_TYPE, LibC.SCM_RIGHTS);
            for (int i = 0; i < descriptors.length; i++) {
                message.putInt(CONTROL + CMSG_DATA + (long) i * Integer.BYTES, descriptors[i]);
            }
            long sent = LibC.sendmsg(fd, message.address(0, MSGHDR_BYTES), LibC.MSG_NOSIGNAL);
            return sent >= 0 && send(from, offset + sent, (int) (length - sent));
        }
    }

    /**
     * Receives some bytes, and descriptors where some come with them.
     *
     * @param descriptors takes them; the caller owns them. Those that don't fit are closed
     * @return how many bytes, as {@link #receive}; the descriptors behind the last received one are -1
     */
    public int receiveDescriptors(MemoryRegion into, long offset, int length, int[] descriptors) {
        Arrays.fill(descriptors, -1);
        try (MemoryRegion message = scratch()) {
            aim(message, into.address(offset, length), length, CONTROL_BYTES_MAX);
            long got;
            do {
                got = LibC.recvmsg(fd, message.address(0, MSGHDR_BYTES), LibC.MSG_CMSG_CLOEXEC);
            } while (got < 0 && Native.getLastError() == LibC.EINTR);
            if (got <= 0) {
                return got < 0 && Native.getLastError() == LibC.EAGAIN ? -1 : 0;
            }
            boolean passed = message.getLong(MSG_CONTROLLEN) >= CMSG_DATA
                    && message.getInt(CONTROL + CMSG_TYPE) == LibC.SCM_RIGHTS;
            int count = passed ? (int) (message.getLong(CONTROL) - CMSG_DATA) / Integer.BYTES : 0;
            for (int i = 0; i < count; i++) {
                int descriptor = message.getInt(CONTROL + CMSG_DATA + (long) i * Integer.BYTES);
                if (i < descriptors.length) {
                    descriptors[i] = descriptor;
                } else {
                    LibC.close(descriptor);
                }
            }
            return (int) got;
        }
    }

    private static void aim(MemoryRegion message, long address, int length, int controlBytes) {
        message.putLong(MSG_IOV, message.address(IOVEC, 16));
        message.putLong(MSG_IOVLEN, 1);
        message.putLong(MSG_CONTROL, message.address(CONTROL, controlBytes));
        message.putLong(MSG_CONTROLLEN, controlBytes);
        message.putLong(IOVEC, address);
        message.putLong(IOVEC + Long.BYTES, length);
    }

    /** Closes a descriptor that was received. */
    public static void closeDescriptor(int descriptor) {
        if (descriptor >= 0) {
            LibC.close(descriptor);
        }
    }

    /** Ends the connection for both sides and wakes whoever waits on it; the descriptor stays until {@link #close}. */
    public synchronized void shutdown() {
        if (!closed) {
            LibC.shutdown(fd, LibC.SHUT_RDWR);
        }
    }

    private void require(String call, int result) {
        if (result < 0) {
            throw failed(call, Native.getLastError());
        }
    }

    private OrbitKvException failed(String call, int errno) {
        return new OrbitKvException(
                ErrorCode.SOCKET, call + " of the socket " + name + " failed: " + Errno.text(errno));
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            LibC.close(fd);
        }
    }
}
