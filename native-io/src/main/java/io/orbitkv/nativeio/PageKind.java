package io.orbitkv.nativeio;

/** The kind of pages asked for behind a memory region; what was really got is told by {@link MemoryRegion#hugeBytes()}. */
public enum PageKind {
    /** The kernel's small pages, 4 KiB. */
    SMALL,
    /** Small pages that the kernel is asked to join into huge ones (MADV_HUGEPAGE); falls back to small ones silently. */
    TRANSPARENT_HUGE,
    /** Reserved huge pages of 2 MiB (hugetlb); refused where the pool of them is too small. */
    HUGETLB
}
