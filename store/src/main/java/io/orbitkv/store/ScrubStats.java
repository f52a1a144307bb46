package io.orbitkv.store;

/**
 * What scrub has done since the store was opened. Progress is of the pass under way, from 0 to 1.
 *
 * @param hostBytes bytes of host memory that were read again
 * @param hostFound blocks of host memory that did not match their checksum any more: dropped, the drive's copy serves
 * @param hostPasses passes over all of host memory
 * @param hostProgress how far the pass is
 * @param driveBytes bytes of payload on the drive that were read again
 * @param driveFound blocks on the drive that did not match their checksum any more: quarantined for good
 * @param drivePasses passes over all segments of the drive
 * @param driveProgress how far the pass is
 * @param footersFound footers of sealed segments that did not check out; their batch headers serve
 * @param readErrors reads that the drive answered with an error
 */
public record ScrubStats(
        long hostBytes,
        long hostFound,
        long hostPasses,
        double hostProgress,
        long driveBytes,
        long driveFound,
        long drivePasses,
        double driveProgress,
        long footersFound,
        long readErrors) {}
