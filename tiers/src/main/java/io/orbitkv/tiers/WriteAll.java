package io.orbitkv.tiers;

/** Admission of everything. */
final class WriteAll implements NvmeAdmission {
    @Override
    public boolean admits(long tag) {
        return true;
    }

    @Override
    public void saved(long head) {}

    @Override
    public void restored() {}

    @Override
    public void use(long tag) {}

    @Override
    public AdmissionPolicy now() {
        return AdmissionPolicy.ALL;
    }
}
