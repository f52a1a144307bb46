package io.orbitkv.kit;

/**
 * How hard one power loss hits: drives differ in what their cache saves, so each loss draws its own odds. One in eight
 * loses all that was not flushed and one in eight nothing, for code tends to be wrong at the ends.
 */
final class PowerLoss {
    /** What becomes of a page that was written and not flushed. */
    enum Fate {
        /** The durable bytes are back. */
        LOST,
        /** One of the writes survives, not necessarily the last. */
        APPLIED,
        /** The last write survives. */
        LAST,
        /** Each sector is of another write. */
        TORN
    }

    private final double lost;
    private final double torn;
    private final double last;

    private PowerLoss(double lost, double torn, double last) {
        this.lost = lost;
        this.torn = torn;
        this.last = last;
    }

    static PowerLoss draw(Gen gen) {
        return switch (gen.below(8)) {
            case 0 -> new PowerLoss(1, 0, 0);
            case 1 -> new PowerLoss(0, 0, 1);
            default -> new PowerLoss(gen.nextDouble() * 0.8, gen.nextDouble() * 0.5, gen.nextDouble());
        };
    }

    Fate ofPage(Gen gen) {
        if (gen.nextDouble() < lost) {
            return Fate.LOST;
        }
        if (gen.nextDouble() < torn) {
            return Fate.TORN;
        }
        return gen.nextDouble() < last ? Fate.LAST : Fate.APPLIED;
    }
}
