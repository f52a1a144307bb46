package io.orbitkv.cli;

import io.orbitkv.tiers.EvictionPolicy;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Eviction policies as people write them: {@code second-chance}, {@code segment-lru}, {@code fifo}. */
final class PolicyName implements ITypeConverter<EvictionPolicy>, Iterable<String> {
    static String of(EvictionPolicy policy) {
        return policy.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    @Override
    public EvictionPolicy convert(String text) {
        for (EvictionPolicy policy : EvictionPolicy.values()) {
            if (of(policy).equals(text)) {
                return policy;
            }
        }
        throw new TypeConversionException(
                "'" + text + "' is no eviction policy; take one of " + String.join(", ", this));
    }

    List<String> names() {
        return Arrays.stream(EvictionPolicy.values()).map(PolicyName::of).toList();
    }

    @Override
    public Iterator<String> iterator() {
        return names().iterator();
    }
}
