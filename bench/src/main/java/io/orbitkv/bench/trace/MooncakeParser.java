package io.orbitkv.bench.trace;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;

/**
 * One JSON object a line: {@code timestamp} (ms), {@code input_length} and {@code output_length} (tokens),
 * {@code hash_ids} (a number for each block of the prompt). Fields that we don't know are skipped.
 */
final class MooncakeParser implements LineParser {
    private final JsonFactory json = JsonFactory.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .build();

    @Override
    public String form() {
        return "each line has to be like {\"timestamp\": 0, \"input_length\": 1000, \"output_length\": 50,"
                + " \"hash_ids\": [0, 1]}";
    }

    @Override
    public boolean parse(String text, TraceRequest request) throws IOException {
        boolean time = false;
        boolean input = false;
        boolean output = false;
        boolean ids = false;
        try (JsonParser parser = json.createParser(text)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new BadLineException("is not a JSON object");
            }
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String name = parser.currentName();
                parser.nextToken();
                switch (name) {
                    case "timestamp" -> {
                        request.time(time(parser));
                        time = true;
                    }
                    case "input_length" -> {
                        request.promptTokens(whole(parser, name, Integer.MAX_VALUE));
                        input = true;
                    }
                    case "output_length" -> output = whole(parser, name, Integer.MAX_VALUE) >= 0;
                    case "hash_ids" -> {
                        ids(parser, request);
                        ids = true;
                    }
                    default -> parser.skipChildren(); // later traces may say more
                }
            }
            if (parser.nextToken() != null) {
                throw new BadLineException("goes on after its JSON object");
            }
        } catch (JsonProcessingException e) {
            throw new BadLineException("is not JSON: " + e.getOriginalMessage() + " (column " + column(e) + ")", e);
        }
        require(time, "timestamp");
        require(input, "input_length");
        require(output, "output_length");
        require(ids, "hash_ids");
        return true;
    }

    private static double time(JsonParser parser) throws IOException {
        double millis = parser.currentToken().isNumeric() ? parser.getDoubleValue() : -1;
        if (!(millis >= 0 && millis <= TraceReader.TIME_MILLIS_MAX)) {
            throw new BadLineException("has a timestamp of " + parser.getText() + "; it has to be a number of ms from 0"
                    + " to " + TraceReader.TIME_MILLIS_MAX);
        }
        return millis;
    }

    private static long whole(JsonParser parser, String name, long largest) throws IOException {
        if (parser.currentToken() == JsonToken.VALUE_NUMBER_INT
                && parser.getNumberType() != JsonParser.NumberType.BIG_INTEGER) {
            long value = parser.getLongValue();
            if (value >= 0 && value <= largest) {
                return value;
            }
        }
        throw new BadLineException(
                "has " + name + " " + parser.getText() + "; it has to be a whole number from 0 to " + largest);
    }

    private static void ids(JsonParser parser, TraceRequest request) throws IOException {
        if (parser.currentToken() != JsonToken.START_ARRAY) {
            throw new BadLineException("has hash_ids that are not an array");
        }
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            request.add(whole(parser, "a hash id of", Long.MAX_VALUE));
        }
    }

    private static void require(boolean present, String name) throws BadLineException {
        if (!present) {
            throw new BadLineException("has no " + name);
        }
    }

    private static int column(JsonProcessingException e) {
        return e.getLocation() == null ? 0 : e.getLocation().getColumnNr();
    }
}
