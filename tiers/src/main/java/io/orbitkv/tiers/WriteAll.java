package io.orbitkv.tiers;

/** Admission of everything. */
final class WriteAll implements NvmeAdmission {
    @Override
    public boolean admits(long tag) {
        return true;
    }

    @Override
    public void begin() {}

    @Override
    public void use(long tag, long branch) {}

    @Override
    public AdmissionPolicy now() {
        return AdmissionPolicy.ALL;
    }
}
