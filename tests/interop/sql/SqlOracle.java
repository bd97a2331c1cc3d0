import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.filter.parser.SelectorParser;

/**
 * Says what RocketMQ makes of conditions. Lines in: condition and properties ("name\1value\2..."), each in base64, a tab
 * between. Lines out: T, F, N (unknown), V (a value that is no condition's), E (evaluation fails), C (does not compile).
 */
public final class SqlOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            out.println(answer(text(parts[0]), properties(text(parts[1]))));
        }
        out.flush();
    }

    private static String answer(String condition, Map<String, Object> properties) {
        Expression expression;
        try {
            expression = SelectorParser.parse(condition);
        } catch (Throwable refused) {
            return "C";
        }
        try {
            Object value = expression.evaluate(new Context(properties));
            return value == null ? "N" : value instanceof Boolean ? (Boolean) value ? "T" : "F" : "V";
        } catch (Throwable failed) {
            return "E";
        }
    }

    private static String text(String encoded) {
        return new String(Base64.getDecoder().decode(encoded), StandardCharsets.UTF_8);
    }

    private static Map<String, Object> properties(String encoded) {
        Map<String, Object> found = new HashMap<>();
        for (String pair : encoded.split("\2")) {
            int at = pair.indexOf('\1');
            if (at > 0) {
                found.put(pair.substring(0, at), pair.substring(at + 1));
            }
        }
        return found;
    }

    private static final class Context implements EvaluationContext {
        private final Map<String, Object> properties;

        Context(Map<String, Object> properties) {
            this.properties = properties;
        }

        @Override
        public Object get(String name) {
            return properties.get(name);
        }

        @Override
        public Map<String, Object> keyValues() {
            return properties;
        }
    }
}
