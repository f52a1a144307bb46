package io.orbitkv.cli;

import io.orbitkv.index.Family;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** Finds the family that the first digits of an id name. */
final class FamilyChoice {
    private FamilyChoice() {}

    static Family of(List<Family> families, String digits, CommandSpec spec) {
        String wanted = digits.toLowerCase(Locale.ROOT);
        List<Family> matching = families.stream()
                .filter(family -> HexFormat.of().formatHex(family.id()).startsWith(wanted))
                .toList();
        if (matching.size() == 1) {
            return matching.get(0);
        }
        throw new ParameterException(
                spec.commandLine(),
                "--family " + digits + " names " + matching.size() + " families of the store; it has "
                        + (families.isEmpty()
                                ? "none"
                                : families.stream()
                                        .map(family -> HexFormat.of().formatHex(family.id(), 0, 8) + " ("
                                                + family.modelId() + ")")
                                        .collect(Collectors.joining(", "))));
    }
}
