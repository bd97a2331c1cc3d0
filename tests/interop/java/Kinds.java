import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Java's part in tests/interop/kinds: reads messages of every kind, and sends those of a kind when a line of standard
 * input names it. Arguments: those of FlowSetup.read. Tells "READS kind", "SENDS kind", "GOT kind ..." and, once a kind
 * was sent, "SENT kind" with what went wrong.
 */
public final class Kinds {
    interface Step {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        FlowSetup.read(args);
        for (String kind : KindsSending.STEPS.keySet()) {
            Lines.say("SENDS", kind);
        }
        KindsReading.start();
        Lines.say("STARTED");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String kind = input.readLine(); kind != null; kind = input.readLine()) {
            String asked = kind;
            background(() -> send(asked));
        }
    }

    private static void send(String kind) {
        try {
            KindsSending.STEPS.get(kind).run();
            Lines.say("SENT", kind, "");
        } catch (Throwable failure) {
            Lines.say("SENT", kind, failure.toString().replaceAll("\\s", " "));
        }
    }

    /** Run in a thread that does not keep the program; a failure is told. */
    static void background(Step step) {
        Thread thread = new Thread(() -> {
            try {
                step.run();
            } catch (Throwable failure) {
                String text = failure + " at " + Arrays.asList(failure.getStackTrace());
                Lines.say("FAILED", text.replaceAll("\\s", " "));
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    /** The topic of what `sender` ("java" or "python") sends to the other. */
    static String topic(String kind, String sender) {
        return "kind-" + kind + "-" + sender + "-" + FlowSetup.suffix;
    }
}
