package io.orbitkv.recovery;

import java.util.List;

/**
 * What an opening met, for logs and statistics.
 *
 * @param nanos how long it took
 * @param footersRead segments whose blocks were found in their footer
 * @param batchesWalked segments whose batches were read one by one
 * @param blocksChecked blocks whose bytes were read and checked
 * @param footersWritten segments that were sealed now
 * @param headersRepaired segments whose damaged header was written again, or made blank where nothing stands behind it
 * @param segmentsDamaged segments in which something did not check out
 * @param foreignNames files that OrbitKV did not put there
 * @param foreignBytes what they take on the drive
 * @param lostFolders data folders that held nothing of their store and were made anew: their blocks are gone
 * @param notes the first of all things that a person may want to know
 */
public record OpeningReport(
        long nanos,
        int footersRead,
        int batchesWalked,
        long blocksChecked,
        int footersWritten,
        int headersRepaired,
        int segmentsDamaged,
        List<String> foreignNames,
        long foreignBytes,
        List<String> lostFolders,
        List<String> notes) {}
