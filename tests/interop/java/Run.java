import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

/** Runs the program named first with the other arguments, and ends with it: netty's threads would stay for seconds. */
public final class Run {
    public static void main(String[] args) throws ReflectiveOperationException {
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        try {
            Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
        } catch (InvocationTargetException exception) {
            exception.getCause().printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }
}
