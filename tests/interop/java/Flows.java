import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import com.alibaba.fastjson.JSON;

/**
 * Every message kind and flow of the official client in one process, several flows at a time. Each checks itself and
 * tells a line "FLOW" with JSON: flow, ok, ms, and what it found or why it failed. Arguments: those of FlowSetup.read,
 * then the flows wanted ("all": every one, "list": only their names).
 */
public final class Flows {
    private static final int AT_ONCE = 6;

    /** Returns what is worth telling; throws when anything is not as it should be. */
    interface Flow {
        Map<String, ?> run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        FlowSetup.read(args);
        Map<String, Flow> flows = new LinkedHashMap<>();
        flows.put("dead-letters", FlowsConsuming::deadLetters); // those that wait long begin first
        flows.put("transactions", FlowsSending::transactions);
        flows.put("ordered", FlowsConsuming::ordered);
        flows.put("from-timestamp", FlowsConsuming::fromTimestamp);
        flows.put("trace", FlowsLooking::trace);
        flows.put("sends", FlowsSending::sends);
        flows.put("rotation", FlowsSending::rotation);
        flows.put("requests", FlowsSending::requests);
        flows.put("broadcast", FlowsConsuming::broadcast);
        flows.put("filters", FlowsConsuming::filters);
        flows.put("lite-subscribe", FlowsPulling::liteSubscribe);
        flows.put("lite-assign", FlowsPulling::liteAssign);
        flows.put("pull", FlowsPulling::pull);
        flows.put("queries", FlowsLooking::queries);
        flows.put("namespace", FlowsConsuming::namespace);
        flows.put("vip", FlowsSending::vip);
        List<String> wanted = Arrays.asList(args).subList(5, args.length);
        if (wanted.contains("list")) {
            flows.keySet().forEach(name -> Lines.say("NAME", name));
            return;
        }
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        List<Future<?>> running = new ArrayList<>();
        flows.forEach((name, flow) -> {
            if (wanted.contains("all") || wanted.contains(name)) {
                running.add(pool.submit(() -> tell(name, flow)));
            }
        });
        for (Future<?> each : running) {
            each.get();
        }
        Lines.say("DONE");
        System.exit(0);
    }

    private static void tell(String name, Flow flow) {
        Map<String, Object> told = new TreeMap<>();
        told.put("flow", name);
        long start = System.nanoTime();
        try {
            told.putAll(flow.run());
            told.put("ok", true);
        } catch (Throwable failure) {
            told.put("ok", false);
            told.put("failure", failure + " at " + Arrays.asList(failure.getStackTrace()).subList(0, 4));
        }
        told.put("ms", (System.nanoTime() - start) / 1_000_000);
        Lines.say("FLOW", JSON.toJSONString(told));
    }
}
