package io.orbitkv.manager;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.orbitkv.nativeio.ErrorCode;
import io.orbitkv.nativeio.OrbitKvException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** What operators and Prometheus see: {@code /health}, {@code /ready}, {@code /metrics}, {@code /v1/stats}. Reads only. */
final class HttpDoor implements AutoCloseable {
    private static final int THREADS = 2;
    private static final int CONNECTIONS_WAITING = 16;

    private final HttpServer server;
    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS, run -> {
        Thread thread = new Thread(run, "http");
        thread.setDaemon(true);
        return thread;
    });
    private final PrometheusMeterRegistry metrics = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

    HttpDoor(Manager manager, InetSocketAddress address) {
        try {
            server = HttpServer.create(address, CONNECTIONS_WAITING);
        } catch (IOException e) {
            threads.shutdown();
            throw new OrbitKvException(
                    ErrorCode.SOCKET,
                    "HTTP can't listen on " + address + ": " + e.getMessage() + "; choose another port",
                    e);
        }
        for (Figures.Figure figure : Figures.ALL) {
            register(manager, figure);
        }
        for (PoolCondition condition : PoolCondition.values()) {
            Gauge.builder("orbitkv.pool.condition", manager, m -> m.pool().condition() == condition ? 1 : 0)
                    .description("1 for why not all of the pool may be used, 0 for any other reason")
                    .tag("condition", condition.name())
                    .register(metrics);
        }
        server.setExecutor(threads);
        page("/health", () -> new Answer(200, "text/plain", "ok\n"));
        page("/ready", () -> ready(manager));
        page("/metrics", () -> new Answer(200, "text/plain; version=0.0.4", metrics.scrape()));
        page("/v1/stats", () -> new Answer(200, "application/json", manager.statsJson() + "\n"));
        server.start();
    }

    private record Answer(int status, String type, String body) {}

    private void register(Manager manager, Figures.Figure figure) {
        String name = "orbitkv." + figure.name().replace('_', '.');
        if (figure.kind() == Figures.Kind.COUNTER) {
            FunctionCounter.builder(name, manager, m -> figure.value().applyAsDouble(m.moment()))
                    .description(figure.meaning())
                    .register(metrics);
        } else {
            Gauge.builder(name, manager, m -> figure.value().applyAsDouble(m.moment()))
                    .description(figure.meaning())
                    .register(metrics);
        }
    }

    private static Answer ready(Manager manager) {
        String why = manager.whyNotReady();
        return why.isEmpty()
                ? new Answer(200, "application/json", "{\"ready\":true," + Figures.poolJson(manager) + "}\n")
                : new Answer(503, "application/json", "{\"ready\":false,\"why\":\"" + why + "\"}\n");
    }

    private void page(String path, Supplier<Answer> content) {
        server.createContext(path, exchange -> {
            try (exchange) {
                boolean known = exchange.getRequestURI().getPath().equals(path);
                boolean reads = exchange.getRequestMethod().equals("GET");
                answer(
                        exchange,
                        !known
                                ? new Answer(404, "text/plain", "there is no such page\n")
                                : reads ? content.get() : new Answer(405, "text/plain", "GET only\n"));
            }
        });
    }

    private static void answer(HttpExchange exchange, Answer answer) throws IOException {
        byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", answer.type());
        exchange.sendResponseHeaders(answer.status(), body.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(body);
        }
    }

    int port() {
        return server.getAddress().getPort();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
