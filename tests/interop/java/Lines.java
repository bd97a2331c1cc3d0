import java.io.PrintStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;

/** One fact a line on standard output: a word, then fields between tabs. The Python side reads them. */
final class Lines {
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    private Lines() {
    }

    static synchronized void say(Object... fields) {
        StringBuilder line = new StringBuilder();
        for (Object field : fields) {
            if (line.length() > 0) {
                line.append('\t');
            }
            line.append(field == null ? "" : field);
        }
        OUT.print(line.append('\n'));
        OUT.flush();
    }

    /** Returns when the Python side closes our standard input. */
    static void waitForEnd() throws java.io.IOException {
        while (System.in.read() >= 0) {
            // nothing is said to us but the end
        }
    }
}
