package io.orbitkv.bench;

import io.orbitkv.nativeio.BlockChecksum;
import io.orbitkv.nativeio.CompletionHandler;
import io.orbitkv.nativeio.HostFolder;
import io.orbitkv.nativeio.IoRing;
import io.orbitkv.nativeio.MemoryPurpose;
import io.orbitkv.nativeio.MemoryRegion;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.nativeio.StorageFile;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Question: what do the checksum of a block and one read through the ring cost? Floors, beside them: the JDK's CRC32C over
 * a direct buffer, and {@code pread} of the same bytes.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@State(Scope.Thread)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class IoBenchmark {
    private static final int RING_DEPTH = 8;
    private static final long WAIT_NANOS = 1_000_000_000;

    @Param({"65536"})
    int blockBytes;

    private Path path;
    private HostFolder folder;
    private StorageFile file;
    private MemoryRegion memory;
    private IoRing ring;
    private ByteBuffer direct;
    private final BlockChecksum checksum = new BlockChecksum();
    private final CRC32C floor = new CRC32C();
    private final CompletionHandler ended = (token, result) -> last = result;
    private int last;

    /** Makes a file of one block. */
    @Setup(Level.Trial)
    public void open() {
        path = BenchStore.newFolder(
                Path.of(System.getProperty("orbitkv.bench.folder", System.getProperty("java.io.tmpdir"))));
        folder = HostFolder.open(path);
        file = folder.create("block", blockBytes);
        memory = MemoryRegion.anonymous(Math.max(blockBytes, 2 << 20), PageKind.TRANSPARENT_HUGE, MemoryPurpose.TOOL);
        memory.fill(0, memory.bytes(), (byte) 3);
        file.write(0, memory, 0, blockBytes);
        direct = ByteBuffer.allocateDirect(blockBytes);
        ring = folder.newRing(RING_DEPTH);
    }

    /** Removes it. */
    @TearDown(Level.Trial)
    public void close() {
        ring.close();
        file.close();
        folder.close();
        memory.close();
        BenchStore.delete(path);
    }

    /** The checksum of a block. */
    @Benchmark
    public int checksum() {
        return checksum.reset().update(memory, 0, blockBytes).value();
    }

    /** The JDK's own over as many bytes. */
    @Benchmark
    public long checksumFloor() {
        floor.reset();
        floor.update(direct.clear());
        return floor.getValue();
    }

    /** One read through the ring, waited for. */
    @Benchmark
    public int ringRead() {
        last = 0;
        ring.read(file, 0, memory, 0, blockBytes, 1);
        while (last == 0) {
            ring.await(WAIT_NANOS);
            ring.poll(ended, 1);
        }
        if (last != blockBytes) {
            throw new IllegalStateException("the read ended with " + last);
        }
        return last;
    }

    /** The same bytes by {@code pread}. */
    @Benchmark
    public int ringFloorPread() {
        file.read(0, memory, 0, blockBytes);
        return blockBytes;
    }
}
