import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Flows of those who look up what was sent: queries, and the trace. */
final class FlowsLooking {
    private static final String TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC";

    private FlowsLooking() {
    }

    private static List<MessageExt> byKey(DefaultMQProducer producer, String topic, String key, long since) {
        try {
            QueryResult result = producer.queryMessage(topic, key, 32, since - 5000, System.currentTimeMillis() + 5000);
            return result.getMessageList();
        } catch (Exception exception) {
            return List.of(); // the client throws when there is none
        }
    }

    static Map<String, ?> queries() throws Exception {
        String topic = FlowSetup.named("queries");
        long since = System.currentTimeMillis();
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        int count = 2 * Patience.routed(() -> producer.fetchPublishMessageQueues(topic)).size();
        List<SendResult> sent = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            org.apache.rocketmq.common.message.Message message = FlowSetup.message(topic, "TagA", number);
            message.setKeys(List.of("key-" + number, "shared", "\u6d88\u606f"));
            sent.add(producer.send(message));
        }
        for (int number = 0; number < count; number++) {
            String key = "key-" + number;
            FlowSetup.await(() -> byKey(producer, topic, key, since).size() == 1, "message by key", key);
            SendResult result = sent.get(number);
            for (MessageExt found : List.of(
                byKey(producer, topic, key, since).get(0),
                producer.viewMessage(topic, result.getMsgId()),
                producer.viewMessage(topic, result.getOffsetMsgId()))) {
                FlowSetup.expect(FlowSetup.text(found).equals("body-" + number), FlowSetup.text(found));
                FlowSetup.expect(found.getTags().equals("TagA"), found);
                FlowSetup.expect(found.getKeys().equals(key + " shared \u6d88\u606f"), found);
                FlowSetup.expect(found.getQueueOffset() == result.getQueueOffset(), "another place", result);
            }
        }
        for (String key : List.of("shared", "\u6d88\u606f")) {
            Set<Integer> numbers = new TreeSet<>();
            byKey(producer, topic, key, since).forEach(message -> numbers.add(FlowSetup.number(message)));
            FlowSetup.expect(numbers.size() == count, key, numbers);
        }
        producer.shutdown();
        return Map.of("found", count);
    }

    static Map<String, ?> trace() throws Exception {
        String topic = FlowSetup.named("trace");
        long since = System.currentTimeMillis();
        FlowSetup.Inbox inbox = new FlowSetup.Inbox();
        DefaultMQPushConsumer consumer = FlowSetup.quick(new DefaultMQPushConsumer(
            topic + "-group", FlowSetup.hook, new AllocateMessageQueueAveragely(), true, null));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox);
        consumer.start();
        DefaultMQProducer producer =
            FlowSetup.quick(new DefaultMQProducer(topic + "-producer", FlowSetup.hook, true, null));
        producer.start();
        List<SendResult> sent = new ArrayList<>();
        for (int number = 0; number < 8; number++) {
            sent.add(producer.send(FlowSetup.message(topic, "TagA", number)));
        }
        inbox.exactly(sent.size());
        // a consumer of 5.x traces only what has MSG_REGION, which brokers 4.9 don't store
        Set<String> wanted = FlowSetup.IS_FIVE ? Set.of("Pub") : Set.of("Pub", "SubBefore", "SubAfter");
        for (SendResult result : sent) {
            FlowSetup.await(() -> kinds(producer, result.getMsgId(), since).containsAll(wanted),
                "traces of", result.getMsgId());
        }
        producer.shutdown();
        consumer.shutdown();
        return Map.of("traced", sent.size());
    }

    private static Set<String> kinds(DefaultMQProducer producer, String id, long since) {
        Set<String> kinds = new TreeSet<>();
        for (MessageExt record : byKey(producer, TRACE_TOPIC, id, since)) {
            for (TraceContext context : TraceDataEncoder.decoderFromTraceDataString(FlowSetup.text(record))) {
                if (context.getTraceBeans().stream().anyMatch(bean -> bean.getMsgId().equals(id))) {
                    FlowSetup.expect(context.isSuccess(), "failed", context.getTraceType());
                    kinds.add(context.getTraceType().toString());
                }
            }
        }
        return kinds;
    }
}
