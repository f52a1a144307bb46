package io.orbitkv.cli;

import picocli.CommandLine.IVersionProvider;

/** Says which OrbitKV this is and which Java runs it. */
final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() {
        String version = Version.class.getPackage().getImplementationVersion();
        return new String[] {
            "orbitkv " + (version == null ? "(not packaged)" : version) + ", disk format 1, Java "
                    + System.getProperty("java.version")
        };
    }
}
