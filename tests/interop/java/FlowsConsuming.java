import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Flows of push consumers. */
final class FlowsConsuming {
    private FlowsConsuming() {
    }

    /** By number modulo 3: consumed, failed once, failed always; the last end as dead letters, read by another group. */
    static Map<String, ?> deadLetters() throws Exception {
        String topic = FlowSetup.named("dead-letters");
        String group = topic + "-group";
        int count = 24;
        FlowSetup.Inbox tries = new FlowSetup.Inbox();
        DefaultMQPushConsumer consumer = FlowSetup.consumer(group);
        consumer.setMaxReconsumeTimes(1);
        consumer.subscribe(topic, "TagA || TagB");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            tries.add(messages);
            int kind = FlowSetup.number(messages.get(0)) % 3;
            return kind == 2 || kind == 1 && messages.get(0).getReconsumeTimes() == 0
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        for (int number = 0; number < count; number++) {
            producer.send(FlowSetup.message(topic, number % 2 == 0 ? "TagA" : "TagB", number));
        }
        for (MessageExt message : tries.exactly(count + count * 2 / 3)) {
            FlowSetup.expect(message.getTopic().equals(topic), "came back as", message.getTopic());
            FlowSetup.expect(message.getReconsumeTimes() <= 1, "tried too often");
        }
        FlowSetup.Inbox dead = new FlowSetup.Inbox();
        String deadTopic = "%DLQ%" + group;
        FlowSetup.eventually(() -> producer.getDefaultMQProducerImpl().fetchPublishMessageQueues(deadTopic));
        DefaultMQPushConsumer reader = FlowSetup.consumer(FlowSetup.named("dead-letter-readers"));
        reader.subscribe(deadTopic, "*");
        reader.registerMessageListener(dead);
        reader.start();
        Set<Integer> numbers = new TreeSet<>();
        for (MessageExt message : dead.exactly(count / 3)) {
            numbers.add(FlowSetup.number(message));
            FlowSetup.expect(message.getProperty("RETRY_TOPIC").equals(topic), message.getProperties());
            FlowSetup.expect(message.getProperty("ORIGIN_MESSAGE_ID") != null, message.getProperties());
        }
        FlowSetup.expect(numbers.stream().allMatch(number -> number % 3 == 2), numbers);
        FlowSetup.expect(numbers.size() == count / 3, numbers);
        consumer.shutdown();
        reader.shutdown();
        producer.shutdown();
        return Map.of("dead", numbers.size());
    }

    /** Eight keys by hash, two ordered consumers; the first message that each gets is put off once. */
    static Map<String, ?> ordered() throws Exception {
        String topic = FlowSetup.named("ordered");
        int keys = 8;
        int count = 240;
        List<MessageExt> got = new ArrayList<>();
        Set<String> consumed = new TreeSet<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (String name : List.of("one", "two")) {
            AtomicInteger calls = new AtomicInteger();
            DefaultMQPushConsumer consumer = FlowSetup.consumer(topic + "-group");
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                if (calls.getAndIncrement() == 0) {
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                synchronized (got) {
                    got.addAll(messages);
                    consumed.add(name);
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
            consumer.start();
            consumers.add(consumer);
        }
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        int half = Patience.routed(() -> producer.fetchPublishMessageQueues(topic)).size() / 2;
        // A queue moved later is unlocked after 20 s.
        // The client may renew a lock while it gives the queue away; then the broker keeps it for its 60 s.
        FlowSetup.awaitFor(
            60 + FlowSetup.WAIT_S,
            () -> consumers.stream().allMatch(each -> holds(each, topic) == half) && held(consumers, topic) == 2 * half,
            "halves of the queues");
        for (int number = 0; number < count; number++) {
            producer.send(
                FlowSetup.message(topic, "TagA", number), new SelectMessageQueueByHash(), "order-" + number % keys);
        }
        FlowSetup.await(() -> {
            synchronized (got) {
                return got.stream().map(FlowSetup::number).distinct().count() == count;
            }
        }, "every message in order");
        Map<Integer, Integer> last = new HashMap<>();
        synchronized (got) {
            FlowSetup.expect(got.size() == count, got.size(), "messages instead of", count);
            for (MessageExt message : got) {
                int number = FlowSetup.number(message);
                Integer before = last.put(number % keys, number);
                FlowSetup.expect(before == null || before < number, number, "came after", before);
            }
            FlowSetup.expect(consumed.size() == 2, "consumed by", consumed);
        }
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        producer.shutdown();
        return Map.of("messages", got.size());
    }

    private static long holds(DefaultMQPushConsumer consumer, String topic) {
        return queues(consumer, topic).count();
    }

    /** How many queues they hold together: halves alone may be a passing state, of the same queues. */
    private static long held(List<DefaultMQPushConsumer> consumers, String topic) {
        return consumers.stream().flatMap(each -> queues(each, topic)).distinct().count();
    }

    private static Stream<MessageQueue> queues(DefaultMQPushConsumer consumer, String topic) {
        return consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
            .filter(queue -> queue.getTopic().equals(topic));
    }

    static Map<String, ?> broadcast() throws Exception {
        String topic = FlowSetup.named("broadcast");
        int count = 20;
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        List<FlowSetup.Inbox> inboxes = new ArrayList<>();
        for (String name : List.of("one", "two")) {
            FlowSetup.Inbox inbox = new FlowSetup.Inbox();
            DefaultMQPushConsumer consumer = FlowSetup.consumer(topic + "-group");
            var model = consumer.getMessageModel(); // its package has another name since 5.0
            consumer.setMessageModel(Enum.valueOf(model.getDeclaringClass(), "BROADCASTING"));
            consumer.setInstanceName(name);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener(inbox);
            consumer.start();
            consumers.add(consumer);
            inboxes.add(inbox);
        }
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        for (int number = 0; number < count; number++) {
            producer.send(FlowSetup.message(topic, "TagA", number));
        }
        for (FlowSetup.Inbox inbox : inboxes) {
            FlowSetup.expect(
                inbox.exactly(count).stream().map(FlowSetup::number).distinct().count() == count, inbox);
        }
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        producer.shutdown();
        return Map.of("messages", 2 * count);
    }

    static Map<String, ?> filters() throws Exception {
        String topic = FlowSetup.named("filters");
        int count = 30;
        Map<String, FlowSetup.Inbox> inboxes = new TreeMap<>();
        Map<String, MessageSelector> selectors = Map.of(
            "sql", MessageSelector.bySql("number BETWEEN 10 AND 19 AND colour IN ('red', 'gr\u00fcn')"),
            "tag", MessageSelector.byTag("TagA||TagC"));
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (Map.Entry<String, MessageSelector> each : selectors.entrySet()) {
            FlowSetup.Inbox inbox = new FlowSetup.Inbox();
            DefaultMQPushConsumer consumer = FlowSetup.consumer(topic + "-" + each.getKey());
            consumer.subscribe(topic, each.getValue());
            consumer.registerMessageListener(inbox);
            consumer.start();
            consumers.add(consumer);
            inboxes.put(each.getKey(), inbox);
        }
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        String[] colours = {"red", "gr\u00fcn", "blue"};
        for (int number = 0; number < count; number++) {
            org.apache.rocketmq.common.message.Message message =
                FlowSetup.message(topic, "Tag" + "ABC".charAt(number % 3), number);
            message.putUserProperty("colour", colours[number % 3]);
            producer.send(message);
        }
        List<Integer> bySql = inboxes.get("sql").exactly(7).stream().map(FlowSetup::number).sorted()
            .collect(Collectors.toList());
        FlowSetup.expect(bySql.equals(List.of(10, 12, 13, 15, 16, 18, 19)), bySql);
        inboxes.get("tag").exactly(20).forEach(message ->
            FlowSetup.expect(!message.getTags().equals("TagB"), "not wanted:", message.getTags()));
        consumers.forEach(DefaultMQPushConsumer::shutdown);
        producer.shutdown();
        return Map.of("bySql", bySql);
    }

    /** Groups without offsets on queues whose start is not in memory: from a time, and from the end. */
    static Map<String, ?> fromTimestamp() throws Exception {
        String topic = FlowSetup.named("from-timestamp");
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        int half = 5 * Patience.routed(() -> producer.fetchPublishMessageQueues(topic)).size();
        for (int number = 0; number < half; number++) {
            producer.send(FlowSetup.message(topic, "TagA", number));
        }
        Thread.sleep(2100);
        String moment = new SimpleDateFormat("yyyyMMddHHmmss").format(new Date());
        Thread.sleep(1000);
        for (int number = half; number < 2 * half; number++) {
            producer.send(FlowSetup.message(topic, "TagA", number));
        }
        FlowSetup.Inbox since = new FlowSetup.Inbox();
        DefaultMQPushConsumer byTime = FlowSetup.consumer(topic + "-time");
        byTime.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_TIMESTAMP);
        byTime.setConsumeTimestamp(moment);
        FlowSetup.Inbox later = new FlowSetup.Inbox();
        DefaultMQPushConsumer byEnd = FlowSetup.consumer(topic + "-end");
        byEnd.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        for (DefaultMQPushConsumer consumer : List.of(byTime, byEnd)) {
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener(consumer == byTime ? since : later);
            consumer.start();
        }
        int queues = half / 5;
        FlowSetup.await(() -> holds(byTime, topic) == queues && holds(byEnd, topic) == queues, "all queues");
        Thread.sleep(500);
        for (int number = 2 * half; number < 2 * half + 8; number++) {
            producer.send(FlowSetup.message(topic, "TagA", number));
        }
        // the search by time answers the message that is nearest: it may be the last of the first half
        FlowSetup.await(() -> since.all().stream().filter(message -> FlowSetup.number(message) >= half).count() >= half + 8
            && later.all().size() >= 8, "messages", since, later);
        Thread.sleep(500);
        int tooOld = (int) since.all().stream().filter(message -> FlowSetup.number(message) < half).count();
        FlowSetup.expect(tooOld <= queues, tooOld, "messages from before the time");
        FlowSetup.expect(since.all().size() == half + 8 + tooOld, since);
        FlowSetup.expect(later.all().size() == 8, later);
        producer.shutdown();
        byTime.shutdown();
        byEnd.shutdown();
        return Map.of("tooOld", tooOld);
    }

    /** Names of topics and groups with a prefix; the topic is created by the first send. */
    static Map<String, ?> namespace() throws Exception {
        String topic = FlowSetup.named("namespace");
        DefaultMQProducer producer =
            FlowSetup.quick(new DefaultMQProducer("space", topic + "-producer", FlowSetup.hook));
        producer.start();
        FlowSetup.expect(producer.send(FlowSetup.message(topic, "TagA", 1)).getMessageQueue().getTopic()
            .equals(topic), "the prefix shows");
        FlowSetup.Inbox inbox = new FlowSetup.Inbox();
        DefaultMQPushConsumer consumer = FlowSetup.quick(
            new DefaultMQPushConsumer("space", topic + "-group", FlowSetup.hook, new AllocateMessageQueueAveragely()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox);
        consumer.start();
        FlowSetup.expect(inbox.exactly(1).get(0).getTopic().equals(topic), "the prefix shows");
        producer.shutdown();
        consumer.shutdown();
        return Map.of();
    }
}
