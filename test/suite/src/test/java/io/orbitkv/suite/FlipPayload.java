package io.orbitkv.suite;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/**
 * A foreign process that rots a running store: flips bits in payloads of sealed segments, one at a time.
 *
 * <p>It knows the disk format alone and needs nothing but a JDK: {@code java FlipPayload.java DATA [FLIPS [MILLIS [SEED]]]},
 * with DATA the store's folder, so many flips (50) so many milliseconds apart (200). Direct I/O, so that no other page
 * than the one with the flip changes and the store's own transfers don't meet pages of a cache.
 */
final class FlipPayload {
    private static final int PAGE_BYTES = 4096;

    /** Of an interface of the JDK that javac 25 warns of, without a way to say that it is meant. */
    private static final OpenOption DIRECT = direct();

    private static final int LISTINGS = 64;
    private static final int LISTING_BYTES = 104;
    private static final int FIRST_PAGE = 96;
    private static final int STORED_BYTES = 84;
    private static final int TRAILER = PAGE_BYTES - 32;
    private static final long TRAILER_MAGIC = magic("OKVTRL01");
    private static final long HEADER_MAGIC = magic("OKVSEG01");
    private static final int TRIES_MAX = 100_000;
    private static final int NEWEST_OF = 4;
    private static final long START_WAIT_NANOS = 60_000_000_000L;

    private final Path segments;
    private final SplittableRandom random;
    private final ByteBuffer page =
            ByteBuffer.allocateDirect(2 * PAGE_BYTES).alignedSlice(PAGE_BYTES).order(ByteOrder.LITTLE_ENDIAN);

    private FlipPayload(Path data, long seed) {
        segments = data.resolve("segments");
        random = new SplittableRandom(seed);
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 1) {
            System.err.println("usage: java FlipPayload.java <data folder> [flips [ms apart [seed]]]");
            System.exit(2);
        }
        int flips = args.length > 1 ? Integer.parseInt(args[1]) : 50;
        long millis = args.length > 2 ? Long.parseLong(args[2]) : 200;
        long seed = args.length > 3 ? Long.parseLong(args[3]) : 1;
        FlipPayload rot = new FlipPayload(Path.of(args[0]), seed);
        long start = System.nanoTime();
        int done = 0;
        while (done < flips) {
            if (rot.flipOne()) {
                done++;
            } else if (done == 0 && System.nanoTime() - start > START_WAIT_NANOS) {
                System.err.println("no sealed segment in " + rot.segments + " for a minute");
                System.exit(1);
            }
            Thread.sleep(done == 0 ? 20 : millis);
        }
        System.out.println("flipped " + done + " payload bits");
    }

    /** Flips a bit of a block in the newest of some sealed segments; false: there is none yet. */
    private boolean flipOne() throws IOException {
        List<Path> files;
        try (Stream<Path> list = Files.list(segments)) {
            files = list.filter(file -> file.toString().endsWith(".seg"))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            return false; // the folder is being made
        }
        Path newest = null;
        long newestAt = 0;
        long newestUse = 0;
        int segmentBytes = segmentBytes(files);
        for (int found = 0, tries = 0; segmentBytes > 0 && found < NEWEST_OF && tries < TRIES_MAX; tries++) {
            Path file = files.get(random.nextInt(files.size()));
            long at = random.nextLong(Math.max(1, Files.size(file) / segmentBytes)) * segmentBytes;
            long use = sealedUse(file, at + segmentBytes);
            if (use > 0) {
                found++;
            }
            if (use > newestUse) {
                newest = file;
                newestAt = at;
                newestUse = use;
            }
            if (tries > 64 * NEWEST_OF && found == 0) {
                return false;
            }
        }
        return newest != null && flip(newest, newestAt, segmentBytes, newestUse);
    }

    private int segmentBytes(List<Path> files) throws IOException {
        if (files.isEmpty() || !read(files.get(0), 0) || page.getLong(0) != HEADER_MAGIC) {
            return 0;
        }
        return (int) page.getLong(16);
    }

    /** The use-sequence of the sealed segment that ends there; 0 where none does. */
    private long sealedUse(Path file, long end) throws IOException {
        return read(file, end - PAGE_BYTES) && page.getLong(TRAILER) == TRAILER_MAGIC ? page.getLong(TRAILER + 8) : 0;
    }

    private boolean flip(Path file, long at, int segmentBytes, long use) throws IOException {
        int footerPage = page(file, at + segmentBytes - PAGE_BYTES).getInt(TRAILER + 16);
        ByteBuffer footer = page(file, at + (long) footerPage * PAGE_BYTES);
        int inPage = Math.min(footer.getInt(24), (PAGE_BYTES - LISTINGS) / LISTING_BYTES);
        if (inPage < 1) {
            return false;
        }
        int listing = LISTINGS + random.nextInt(inPage) * LISTING_BYTES;
        if (listing + LISTING_BYTES > TRAILER) {
            return false;
        }
        int first = footer.getShort(listing + FIRST_PAGE) & 0xffff;
        int bit = random.nextInt(footer.getInt(listing + STORED_BYTES)) * Byte.SIZE + random.nextInt(Byte.SIZE);
        long pageAt = at + ((long) first + bit / Byte.SIZE / PAGE_BYTES) * PAGE_BYTES;
        int offset = bit / Byte.SIZE % PAGE_BYTES;
        if (sealedUse(file, at + segmentBytes) != use || !read(file, pageAt)) {
            return false; // reused meanwhile
        }
        page.put(offset, (byte) (page.get(offset) ^ 1 << bit % Byte.SIZE));
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE, DIRECT)) {
            return channel.write(page.clear(), pageAt) == PAGE_BYTES;
        }
    }

    private ByteBuffer page(Path file, long at) throws IOException {
        if (!read(file, at)) {
            throw new IOException(file + " ends before byte " + at);
        }
        return page;
    }

    private boolean read(Path file, long at) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, DIRECT)) {
            return channel.read(page.clear(), at) == PAGE_BYTES;
        }
    }

    private static OpenOption direct() {
        try {
            Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
            return (OpenOption) options.getField("DIRECT").get(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("this JDK can't open files for direct I/O; take a JDK 17 or newer", e);
        }
    }

    private static long magic(String ascii) {
        long value = 0;
        for (int i = ascii.length() - 1; i >= 0; i--) {
            value = value << Byte.SIZE | ascii.charAt(i);
        }
        return value;
    }
}
