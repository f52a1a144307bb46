package io.orbitkv.tiers;

import io.orbitkv.kit.Gen;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;

/** Makes listings and pages for tests. */
final class Listings {
    static final byte[] STORE_ID = "0123456789abcdef".getBytes(java.nio.charset.StandardCharsets.US_ASCII);

    private Listings() {}

    static MemoryRegion pages(int count) {
        return MemoryRegion.anonymous((long) count * DiskFormat.PAGE_BYTES, PageKind.SMALL, MemoryPurpose.TOOL);
    }

    static byte[] bytes(MemoryRegion region, long offset, int length) {
        byte[] copy = new byte[length];
        region.copyTo(offset, copy, 0, length);
        return copy;
    }

    /** Fills a listing with everything but the first page. */
    static void fill(BlockListing listing, Gen gen, int storedBytes) {
        listing.clear().key(gen.bytes(BlockListing.KEY_BYTES), 0);
        if (gen.coin()) {
            listing.parent(gen.bytes(BlockListing.KEY_BYTES), 0);
        }
        listing.namespaceId64(gen.nextLong())
                .birth(gen.between(1L, 1L << 40))
                .namespaceEpoch(gen.between(0, 1000))
                .storedBytes(storedBytes)
                .logicalBytes(storedBytes)
                .checksum(gen.nextInt());
    }

    /** Encodes a valid batch at page {@code page} with the sizes given; returns its payload pages. */
    static int batch(
            LogGeometry geometry,
            MemoryRegion region,
            long offset,
            Gen gen,
            int segment,
            long use,
            int sequence,
            int page,
            int... sizes) {
        BatchHeader.begin(region, offset);
        BlockListing listing = new BlockListing();
        int next = page + BatchHeader.PAGES;
        for (int i = 0; i < sizes.length; i++) {
            fill(listing.wrap(region, offset + BatchHeader.listingOffset(i)), gen, sizes[i]);
            listing.firstPage(next);
            next += listing.pages();
        }
        int pages = next - page - BatchHeader.PAGES;
        new BatchHeader(geometry).encode(region, offset, segment, use, sequence, sizes.length, pages);
        return pages;
    }
}
