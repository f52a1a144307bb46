package io.orbitkv.cli;

import io.orbitkv.manager.ManagerOptions;
import io.orbitkv.nativeio.PageKind;
import io.orbitkv.store.StoreOptions;
import io.orbitkv.tiers.AdmissionPolicy;
import io.orbitkv.tiers.Durability;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** How a manager is started from the command line. */
final class ManagerFlags {
    private static final Pattern ADDRESS = Pattern.compile("(.+):([0-9]{1,5})");
    private static final Pattern FLUSH = Pattern.compile("interval(?::([0-9]{1,6}))?");

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;

    @Option(
            names = "--bootstrap-socket",
            paramLabel = "<path>",
            defaultValue = "/run/orbitkv/orbitkv.sock",
            description = "The Unix socket that clients connect to; made with mode 0600, its folder must exist."
                    + " Default: ${DEFAULT-VALUE}.")
    Path socket;

    @Option(
            names = "--pool-size",
            paramLabel = "<size>",
            defaultValue = "1gb",
            converter = Sizes.class,
            description = "Bytes of host memory that hold blocks. Default: ${DEFAULT-VALUE}.")
    long poolBytes;

    @Option(
            names = {"--ssd-cache-path", "--data"},
            required = true,
            paramLabel = "<folder>",
            description = "A folder on a drive, which survives restarts; give it once for each drive.")
    List<Path> folders;

    @Option(
            names = {"--ssd-cache-capacity", "--cap"},
            paramLabel = "<size>",
            converter = Sizes.class,
            description =
                    "Bytes that the folders may take on the drives, all files together. Default: 8gb for a new store,"
                            + " what it has for an old one.")
    Long capBytes;

    @Option(
            names = "--ssd-backend",
            paramLabel = "<how>",
            defaultValue = "auto",
            description = "How drives are read and written: auto or uring. Default: ${DEFAULT-VALUE}.")
    String backend;

    @Option(
            names = "--ssd-write-policy",
            paramLabel = "<policy>",
            defaultValue = "all",
            description = "What is written to the drives: all, reuse or duel. Default: ${DEFAULT-VALUE}.")
    String admission;

    @Option(
            names = "--durability",
            paramLabel = "<when>",
            defaultValue = "interval:100",
            description =
                    "When what was written is flushed: written (never by itself), interval:<milliseconds> or always."
                            + " Default: ${DEFAULT-VALUE}.")
    String durability;

    @Option(
            names = "--hint-value-size",
            paramLabel = "<size>",
            defaultValue = "64kb",
            converter = Sizes.class,
            description = "Bytes of the largest block that is expected; segments and index follow it."
                    + " Default: ${DEFAULT-VALUE}.")
    long blockBytes;

    @Option(
            names = "--segment-bytes",
            paramLabel = "<size>",
            converter = Sizes.class,
            description = "Bytes of a segment, a power of two from 64kb to 64mb. Default: chosen by the tiers' sizes.")
    Long segmentBytes;

    @Option(
            names = "--use-hugepages",
            description = "Take the pool from reserved huge pages of 2 MiB (vm.nr_hugepages). Default: off.")
    boolean hugePages;

    @Option(
            names = "--query-budget",
            paramLabel = "<size>",
            converter = Sizes.class,
            description = "Bytes of blocks that all leases may claim together; a query beyond is a miss."
                    + " Default: three quarters of pool and drives.")
    Long queryBudget;

    @Option(
            names = "--query-instance-budget",
            paramLabel = "<size>",
            converter = Sizes.class,
            description = "The same for the leases of one engine. Default: no bound but --query-budget.")
    Long instanceBudget;

    @Option(
            names = "--lease-ms",
            paramLabel = "<milliseconds>",
            defaultValue = "30000",
            description = "How long a lease lasts unless it is renewed. Default: ${DEFAULT-VALUE}.")
    long leaseMillis;

    @Option(
            names = "--leases-max",
            paramLabel = "<n>",
            defaultValue = "1024",
            description = "Most leases of one session, and most of its queries that wait. Default: ${DEFAULT-VALUE}.")
    int leasesMax;

    @Option(
            names = "--staging-size",
            paramLabel = "<size>",
            defaultValue = "64mb",
            converter = Sizes.class,
            description =
                    "Bytes through which one client hands blocks over, in both directions. Default: ${DEFAULT-VALUE}.")
    long stagingBytes;

    @Option(
            names = "--sessions-max",
            paramLabel = "<n>",
            defaultValue = "256",
            description = "Most connections at once; a client has two. Default: ${DEFAULT-VALUE}.")
    int sessionsMax;

    @Option(
            names = "--http-addr",
            paramLabel = "<host:port>",
            defaultValue = "127.0.0.1:9091",
            description = "Where HTTP answers, or none; port 0 takes any. Only addresses of this machine's loopback."
                    + " Default: ${DEFAULT-VALUE}.")
    String http;

    ManagerOptions options() {
        if (!backend.equals("auto") && !backend.equals("uring")) {
            throw bad("--ssd-backend is '" + backend + "'; give auto or uring (cufile is not there yet)");
        }
        StoreOptions store = StoreOptions.inFolders(folders)
                .poolBytes(poolBytes)
                .blockBytesLargest((int) Math.min(blockBytes, 32 << 20))
                .leaseMillis(leaseMillis)
                .leasesMax(Math.min(1 << 20, 4 * leasesMax + 1024))
                .leaseBytesMax(queryBudget == null ? 0 : queryBudget)
                .pageKind(hugePages ? PageKind.HUGETLB : PageKind.TRANSPARENT_HUGE)
                .admission(admissionPolicy());
        if (capBytes != null) {
            store.capBytes(capBytes);
        } else if (DataPaths.holdStore(folders)) {
            store.capBytes(0);
        }
        if (segmentBytes != null) {
            store.segmentBytes(segmentBytes);
        }
        applyDurability(store);
        return ManagerOptions.of(socket, store)
                .stagingBytes(stagingBytes)
                .sessionsMax(sessionsMax)
                .leasesMax(leasesMax)
                .instanceLeaseBytesMax(instanceBudget == null ? 0 : instanceBudget)
                .http(http.equals("none") ? null : address());
    }

    private AdmissionPolicy admissionPolicy() {
        return switch (admission.toLowerCase(Locale.ROOT)) {
            case "all" -> AdmissionPolicy.ALL;
            case "reuse" -> AdmissionPolicy.REUSE;
            case "duel" -> AdmissionPolicy.DUEL;
            default -> throw bad("--ssd-write-policy is '" + admission + "'; give all, reuse or duel");
        };
    }

    private void applyDurability(StoreOptions store) {
        Matcher interval = FLUSH.matcher(durability);
        if (interval.matches()) {
            store.durability(Durability.INTERVAL);
            if (interval.group(1) != null) {
                store.flushIntervalMillis(Long.parseLong(interval.group(1)));
            }
        } else if (durability.equals("written")) {
            store.durability(Durability.WRITTEN);
        } else if (durability.equals("always")) {
            store.durability(Durability.ALWAYS);
        } else {
            throw bad("--durability is '" + durability + "'; give written, interval:<milliseconds> or always");
        }
    }

    /** There is no token yet that would keep others out, so nothing is opened to them. */
    private InetSocketAddress address() {
        Matcher parts = ADDRESS.matcher(http);
        if (!parts.matches() || Integer.parseInt(parts.group(2)) > 65_535) {
            throw bad("--http-addr is '" + http + "'; give host:port, for example 127.0.0.1:9091, or none");
        }
        InetSocketAddress address = new InetSocketAddress(parts.group(1), Integer.parseInt(parts.group(2)));
        if (address.isUnresolved() || !address.getAddress().isLoopbackAddress()) {
            throw bad("--http-addr is '" + http + "', which others could reach; give an address of this machine's"
                    + " loopback, for example 127.0.0.1:9091");
        }
        return address;
    }

    private ParameterException bad(String why) {
        return new ParameterException(spec.commandLine(), why);
    }
}
