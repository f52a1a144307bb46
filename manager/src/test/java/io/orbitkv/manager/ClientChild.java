package io.orbitkv.manager;

/** A client as a process of its own: {@code ClientChild SOCKET}. Says so when it is connected; keeps its mappings until stdin ends. */
final class ClientChild {
    private ClientChild() {}

    public static void main(String[] arguments) throws Exception {
        try (JavaClient client = new JavaClient(arguments[0], "child")) {
            System.out.println("connected " + client.epoch());
            while (System.in.read() >= 0) {
                // ends with the parent
            }
        }
    }
}
