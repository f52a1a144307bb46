package io.orbitkv.tiers;

/** Admission of what was used before. */
final class WriteOnSecondUse implements NvmeAdmission {
    private final SeenTags seen;

    WriteOnSecondUse(SeenTags seen) {
        this.seen = seen;
    }

    @Override
    public boolean admits(long tag) {
        return seen.seen(tag);
    }

    @Override
    public void begin() {}

    @Override
    public void use(long tag, long branch) {}

    @Override
    public AdmissionPolicy now() {
        return AdmissionPolicy.REUSE;
    }
}
