import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/**
 * Runs sub-commands of mqadmin one after the other in one virtual machine. Each line on standard input is a limit in
 * milliseconds and a command's arguments, between tabs; each answer is a line with "ENDED" or "CUT" (the limit was
 * reached, and the command interrupted) and, as base64, what the command and the threads that it started have printed.
 * -Dunlisted names classes of commands that are published but not in mqadmin's list.
 */
public final class RunCommands {
    private static final Map<ThreadGroup, ByteArrayOutputStream> PRINTED = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        PrintStream byCommand = new PrintStream(new ByCommand(), true, StandardCharsets.UTF_8);
        System.setOut(byCommand);
        System.setErr(byCommand);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] fields = line.split("\t", -1);
            String[] arguments = Arrays.copyOfRange(fields, 1, fields.length);
            ThreadGroup group = new ThreadGroup(String.join(" ", arguments));
            PRINTED.put(group, new ByteArrayOutputStream());
            Thread thread = new Thread(group, () -> run(arguments));
            thread.setDaemon(true);
            thread.start();
            thread.join(Long.parseLong(fields[0]));
            boolean cut = thread.isAlive();
            if (cut) {
                thread.interrupt();
                thread.join(10_000);
            }
            byte[] printed = PRINTED.get(group).toByteArray();
            answers.println((cut ? "CUT" : "ENDED") + "\t" + Base64.getEncoder().encodeToString(printed));
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // startMonitoring's threads would go on
    }

    private static void run(String[] arguments) {
        try {
            for (Field field : MQAdminStartup.class.getDeclaredFields()) {
                if (field.getType() == List.class) { // RocketMQ 4 and 5 name it differently
                    field.setAccessible(true);
                    ((List<?>) field.get(null)).clear(); // main0 fills it each time; some commands work once only
                }
            }
            for (String name : System.getProperty("unlisted", "").split(",")) {
                if (!name.isEmpty()) {
                    MQAdminStartup.initCommand((SubCommand) Class.forName(name).getDeclaredConstructor().newInstance());
                }
            }
            MQAdminStartup.main0(arguments, null);
        } catch (ReflectiveOperationException | RuntimeException exception) {
            exception.printStackTrace();
        }
    }

    /** What a thread prints goes to the command that started it, or that started the thread that did. */
    private static final class ByCommand extends OutputStream {
        @Override
        public void write(int value) {
            write(new byte[] {(byte) value}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) {
            for (ThreadGroup group = Thread.currentThread().getThreadGroup(); group != null; group = group.getParent()) {
                ByteArrayOutputStream printed = PRINTED.get(group);
                if (printed != null) {
                    printed.write(bytes, offset, length);
                    return;
                }
            }
        }
    }
}
