import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** How Java reads what Python sends of each kind: as tests/interop/kinds/reading.py does. */
final class KindsReading {
    private static final List<String> PLAIN = List.of("single", "many", "blocking", "batch", "properties", "zlib",
        "lz4, zstd", "delayed", "transaction", "retry");

    private KindsReading() {
    }

    static void start() throws Exception {
        for (String kind : PLAIN) {
            push(kind, "one", consumer(kind), topic(kind), MessageSelector.byTag("*"));
        }
        push("tags", "one", consumer("tags"), topic("tags"), MessageSelector.byTag("A || B"));
        push("sql", "one", consumer("sql"), topic("sql"), MessageSelector.bySql("price > 10"));
        for (String member : List.of("one", "two")) {
            DefaultMQPushConsumer consumer = consumer("broadcast");
            var model = consumer.getMessageModel(); // its package has another name since 5.0
            consumer.setMessageModel(Enum.valueOf(model.getDeclaringClass(), "BROADCASTING"));
            consumer.setInstanceName(member);
            push("broadcast", member, consumer, topic("broadcast"), MessageSelector.byTag("*"));
        }
        String dead = "%DLQ%" + topic("dead-letters") + "-dead";
        push("dead-letters", "one", consumer("dead-letters"), dead, MessageSelector.byTag("*"));
        push("trace", "one", fromFirst(new DefaultMQPushConsumer(group("trace"), FlowSetup.hook,
            new AllocateMessageQueueAveragely(), true, null)), topic("trace"), MessageSelector.byTag("*"));
        push("namespace", "one", fromFirst(new DefaultMQPushConsumer("space", group("namespace"), FlowSetup.hook,
            new AllocateMessageQueueAveragely())), topic("namespace"), MessageSelector.byTag("*"));
        ordered();
        locks();
        request();
        pull();
        assign();
        queries();
    }

    private static String topic(String kind) {
        return Kinds.topic(kind.replace(", ", "-"), "python");
    }

    private static String group(String kind) {
        return topic(kind) + "-group";
    }

    private static DefaultMQPushConsumer consumer(String kind) {
        return FlowSetup.consumer(group(kind));
    }

    private static DefaultMQPushConsumer fromFirst(DefaultMQPushConsumer consumer) {
        FlowSetup.quick(consumer).setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    private static void push(String kind, String member, DefaultMQPushConsumer consumer, String topic,
        MessageSelector selector) throws Exception {
        consumer.subscribe(topic, selector);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> tell(kind, member, message));
            boolean isPutOff = kind.equals("retry") && messages.get(0).getReconsumeTimes() == 0;
            return isPutOff ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Lines.say("READS", kind);
    }

    private static void tell(String kind, String member, MessageExt message) {
        Lines.say("GOT", kind, member, FlowSetup.text(message), message.getTags(), message.getKeys(),
            message.getUserProperty("p"), message.getFlag(), message.getReconsumeTimes(),
            message.getStoreTimestamp() - message.getBornTimestamp(), message.getQueueId(), message.getQueueOffset(),
            message.getTopic(), message.getMsgId());
    }

    private static void ordered() throws Exception {
        DefaultMQPushConsumer consumer = consumer("ordered");
        consumer.subscribe(topic("ordered"), "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(message -> tell("ordered", "one", message));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Lines.say("READS", "ordered");
    }

    /** A member takes one message and leaves; another goes on with its queues. */
    private static void locks() throws Exception {
        AtomicBoolean hasOne = new AtomicBoolean();
        DefaultMQPushConsumer first = consumer("locks");
        first.setInstanceName("locks-one");
        first.subscribe(topic("locks"), "*");
        first.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            if (hasOne.getAndSet(true)) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            tell("locks", "one", messages.get(0));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        first.start();
        Lines.say("READS", "locks");
        Kinds.background(() -> {
            while (!hasOne.get()) {
                Thread.sleep(20);
            }
            first.shutdown();
            DefaultMQPushConsumer second = consumer("locks");
            second.setInstanceName("locks-two");
            second.subscribe(topic("locks"), "*");
            second.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(message -> tell("locks", "two", message));
                return ConsumeOrderlyStatus.SUCCESS;
            });
            second.start();
        });
    }

    private static void request() throws Exception {
        DefaultMQProducer producer = FlowSetup.started(topic("request") + "-answers");
        DefaultMQPushConsumer consumer = consumer("request");
        consumer.subscribe(topic("request"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                tell("request", "one", message);
                Kinds.background(() -> producer.send(MessageUtil.createReplyMessage(
                    message, FlowSetup.bytes("re: " + FlowSetup.text(message)))));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Lines.say("READS", "request");
    }

    private static DefaultLitePullConsumer lite(String kind) {
        DefaultLitePullConsumer consumer =
            FlowSetup.quick(new DefaultLitePullConsumer(group(kind), FlowSetup.hook));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        return consumer;
    }

    private static void keepPolling(String kind, DefaultLitePullConsumer consumer) {
        Kinds.background(() -> {
            while (true) {
                List<MessageExt> messages = consumer.poll(1000);
                messages.forEach(message -> tell(kind, "one", message));
                if (!messages.isEmpty()) {
                    consumer.commitSync();
                }
            }
        });
    }

    private static void pull() throws Exception {
        DefaultLitePullConsumer consumer = lite("pull");
        consumer.subscribe(topic("pull"), "*");
        consumer.start();
        Lines.say("READS", "pull");
        keepPolling("pull", consumer);
    }

    /** Every queue from its second message on, once that is there. */
    private static void assign() throws Exception {
        DefaultLitePullConsumer consumer = lite("assign");
        consumer.start();
        Lines.say("READS", "assign");
        Kinds.background(() -> {
            List<MessageQueue> queues =
                List.copyOf(FlowSetup.eventually(() -> consumer.fetchMessageQueues(topic("assign"))));
            consumer.assign(queues);
            consumer.pause(queues);
            for (MessageQueue queue : queues) {
                while (!hasSecond(consumer, queue)) {
                    Thread.sleep(50);
                }
            }
            consumer.resume(queues);
            keepPolling("assign", consumer);
        });
    }

    private static boolean hasSecond(DefaultLitePullConsumer consumer, MessageQueue queue) {
        try {
            consumer.seek(queue, 2); // refused while the queue ends before it
            consumer.seek(queue, 1);
            return true;
        } catch (MQClientException exception) {
            return false;
        }
    }

    private static void queries() throws Exception {
        DefaultMQProducer asks = FlowSetup.started(topic("queries") + "-asks");
        Lines.say("READS", "queries");
        Kinds.background(() -> {
            while (true) {
                try {
                    List<MessageExt> found = asks.queryMessage(
                        topic("queries"), "the-key", 8, 0, System.currentTimeMillis() + 3_600_000).getMessageList();
                    if (!found.isEmpty()) {
                        tell("queries", "key", found.get(0));
                        tell("queries", "id", asks.viewMessage(topic("queries"), found.get(0).getMsgId()));
                        return;
                    }
                } catch (MQClientException exception) {
                    Lines.say("WAITS", "queries", exception.getResponseCode()); // it is not there yet
                }
                Thread.sleep(100);
            }
        });
    }
}
