package io.orbitkv.manager;

import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.UnixSocket;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The frames of one connection: one that was received, and one that is being written. One thread.
 *
 * <p>The buffer of the received frame ends where the frame does, so that whatever a frame claims about its parts, reading
 * them stays within it.
 */
final class Frames implements AutoCloseable {
    private static final int BUFFER_BYTES = Wire.LENGTH_BYTES + Wire.FRAME_BYTES_MAX;
    private static final int NOTHING = -1;

    private final UnixSocket socket;
    private final MemoryRegion input;
    private final MemoryRegion output;
    private final UnsafeBuffer in = new UnsafeBuffer(0, 0);
    private final UnsafeBuffer out = new UnsafeBuffer(0, 0);
    private final Lookout lookout = new Lookout();

    /** Bytes in {@link #input}, from its start: of the present frame and of those behind it. */
    private int received;

    /** Bytes of the present frame. */
    private int present;

    Frames(UnixSocket socket) {
        this.socket = socket;
        this.input = MemoryRegion.anonymous(BUFFER_BYTES, PageKind.SMALL, MemoryPurpose.SESSION);
        this.output = MemoryRegion.anonymous(BUFFER_BYTES, PageKind.SMALL, MemoryPurpose.SESSION);
        output.wrap(out, 0, BUFFER_BYTES);
    }

    /**
     * Waits for the next frame.
     *
     * @return false at the end of the connection
     * @throws io.orbitkv.nativeio.OrbitKvException where the peer sends what can't be a frame: the connection is worth
     *     nothing any more
     */
    boolean receive() {
        int rest = received - present;
        if (rest > 0) {
            input.copyFrom(0, input, present, rest);
        }
        received = rest;
        present = 0;
        int frame = Wire.LENGTH_BYTES;
        while (received < frame || present == 0) {
            if (received >= Wire.LENGTH_BYTES) {
                int length = input.getInt(0);
                if (length < Wire.HEADER_BYTES || length > Wire.FRAME_BYTES_MAX) {
                    throw Wire.badFrame("a frame has " + Wire.HEADER_BYTES + " to " + Wire.FRAME_BYTES_MAX
                            + " bytes, this one claims " + length);
                }
                frame = Wire.LENGTH_BYTES + length;
                if (received >= frame) {
                    present = frame;
                    input.wrap(in, 0, frame);
                    return true;
                }
            }
            int got = lookout.pays() ? look() : NOTHING;
            if (got == NOTHING) {
                got = socket.receive(input, received, BUFFER_BYTES - received);
            }
            if (got <= 0) {
                return false;
            }
            received += got;
        }
        return true;
    }

    /** Looks for bytes for a moment; {@link #NOTHING} where none came. */
    private int look() {
        long until = System.nanoTime() + Lookout.NANOS;
        int got;
        do {
            got = socket.receiveNow(input, received, BUFFER_BYTES - received);
        } while (got == NOTHING && System.nanoTime() - until < 0);
        lookout.paid(got != NOTHING);
        return got;
    }

    /** The received frame. */
    UnsafeBuffer in() {
        return in;
    }

    /** Where the next frame is written. */
    UnsafeBuffer out() {
        return out;
    }

    /** Sends a frame whose end is given; false where the peer is gone or doesn't read. */
    boolean send(int end) {
        output.putInt(0, end - Wire.LENGTH_BYTES);
        return socket.send(output, 0, end);
    }

    /** Sends a frame and descriptors with it. */
    boolean send(int end, int... descriptors) {
        output.putInt(0, end - Wire.LENGTH_BYTES);
        return socket.sendDescriptors(output, 0, end, descriptors);
    }

    @Override
    public void close() {
        input.close();
        output.close();
    }
}
