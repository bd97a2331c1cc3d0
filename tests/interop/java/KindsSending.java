import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What Java sends of each kind: the same as tests/interop/kinds/sending.py. */
final class KindsSending {
    static final Map<String, Kinds.Step> STEPS = new LinkedHashMap<>();

    static {
        STEPS.put("single", KindsSending::single);
        STEPS.put("blocking", () -> plain("blocking", "one", "two"));
        STEPS.put("batch", KindsSending::batch);
        STEPS.put("properties", KindsSending::properties);
        STEPS.put("zlib", () -> plain("zlib", "zlib ".repeat(2000)));
        STEPS.put("delayed", KindsSending::delayed);
        STEPS.put("transaction", KindsSending::transaction);
        STEPS.put("ordered", () -> keyed("ordered"));
        STEPS.put("locks", () -> keyed("locks"));
        STEPS.put("tags", KindsSending::tags);
        STEPS.put("sql", KindsSending::sql);
        STEPS.put("broadcast", () -> plain("broadcast", "one", "two"));
        STEPS.put("retry", () -> plain("retry", "again"));
        STEPS.put("dead-letters", KindsSending::deadLetters);
        STEPS.put("pull", () -> plain("pull", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"));
        STEPS.put("assign", KindsSending::assign);
        STEPS.put("request", KindsSending::request);
        STEPS.put("trace", KindsSending::trace);
        STEPS.put("namespace", KindsSending::namespace);
        STEPS.put("queries", KindsSending::queries);
    }

    private KindsSending() {
    }

    private static String topic(String kind) {
        return Kinds.topic(kind, "java");
    }

    private static Message message(String kind, String body) {
        Message message = new Message(topic(kind), "T", "k-" + (body.length() < 20 ? body : "long"),
            FlowSetup.bytes(body));
        message.putUserProperty("p", "\u00fc");
        return message;
    }

    private static DefaultMQProducer producer(String kind) throws Exception {
        return FlowSetup.started(topic(kind) + "-producer");
    }

    private static List<MessageQueue> queues(DefaultMQProducer producer, String kind) throws Exception {
        return Patience.routed(() -> producer.fetchPublishMessageQueues(topic(kind)));
    }

    private static void plain(String kind, String... bodies) throws Exception {
        DefaultMQProducer producer = producer(kind);
        for (String body : bodies) {
            producer.send(message(kind, body));
        }
    }

    private static void single() throws Exception {
        DefaultMQProducer producer = producer("single");
        List<MessageQueue> queues = queues(producer, "single");
        producer.send(message("single", "sync"));
        CompletableFuture<SendResult> sent = new CompletableFuture<>();
        producer.send(message("single", "async"), new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                sent.complete(result);
            }

            @Override
            public void onException(Throwable failure) {
                sent.completeExceptionally(failure);
            }
        });
        sent.get(FlowSetup.WAIT_S, TimeUnit.SECONDS);
        producer.sendOneway(message("single", "oneway"));
        producer.send(message("single", "queue"), queues.get(3));
        producer.send(message("single", "selector"), (all, each, index) -> all.get((Integer) index), 1);
    }

    private static void batch() throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            messages.add(message("batch", "b" + number));
        }
        producer("batch").send(messages);
    }

    private static void properties() throws Exception {
        DefaultMQProducer producer = producer("properties");
        Message rich = new Message(topic("properties"), "Tag\u00e4", "k1 k2",
            FlowSetup.bytes("\u00e4\u6d88\u606f\ud83d\ude80"));
        rich.putUserProperty("p", "\u00fc\ud83d\ude80");
        rich.setFlag(7);
        producer.send(rich);
        producer.send(new Message(topic("properties"), FlowSetup.bytes("-")));
    }

    private static void delayed() throws Exception {
        Message later = message("delayed", "later");
        later.setDelayTimeLevel(2);
        producer("delayed").send(later);
    }

    private static void transaction() throws Exception {
        TransactionMQProducer producer =
            FlowSetup.quick(new TransactionMQProducer(topic("transaction") + "-producer", FlowSetup.hook));
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object state) {
                return (LocalTransactionState) state;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return FlowSetup.text(message).equals("asked") ? LocalTransactionState.COMMIT_MESSAGE
                    : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        producer.start();
        producer.sendMessageInTransaction(message("transaction", "rollback"), LocalTransactionState.ROLLBACK_MESSAGE);
        producer.sendMessageInTransaction(message("transaction", "commit"), LocalTransactionState.COMMIT_MESSAGE);
        producer.sendMessageInTransaction(message("transaction", "asked"), LocalTransactionState.UNKNOW);
    }

    private static void keyed(String kind) throws Exception {
        DefaultMQProducer producer = producer(kind);
        for (int number = 0; number < 24; number++) {
            int key = number % 3;
            producer.send(message(kind, "abc".charAt(key) + "-" + number / 3),
                (all, each, index) -> all.get((Integer) index), key);
        }
    }

    private static void tags() throws Exception {
        DefaultMQProducer producer = producer("tags");
        for (String body : List.of("A0", "B0", "C0", "A1", "B1", "C1")) {
            Message message = message("tags", body);
            message.setTags(body.substring(0, 1));
            producer.send(message);
        }
    }

    private static void sql() throws Exception {
        DefaultMQProducer producer = producer("sql");
        for (String price : List.of("5", "15", "25")) {
            Message message = message("sql", price);
            message.putUserProperty("price", price);
            producer.send(message);
        }
    }

    private static void deadLetters() throws Exception {
        DefaultMQPushConsumer consumer = FlowSetup.consumer(topic("dead-letters") + "-dead");
        consumer.setMaxReconsumeTimes(0);
        consumer.subscribe(topic("dead-letters"), "*");
        consumer.registerMessageListener(
            (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.RECONSUME_LATER);
        consumer.start();
        plain("dead-letters", "dead");
    }

    private static void assign() throws Exception {
        DefaultMQProducer producer = producer("assign");
        for (MessageQueue queue : queues(producer, "assign")) {
            producer.send(message("assign", "first"), queue);
            producer.send(message("assign", "second"), queue);
        }
    }

    private static void request() throws Exception {
        DefaultMQProducer producer = producer("request");
        for (String question : List.of("one", "gr\u00fc\u00dfe", "long ".repeat(2000))) {
            Message reply = producer.request(message("request", question), FlowSetup.WAIT_S * 1000L);
            FlowSetup.expect(FlowSetup.text(reply).equals("re: " + question), FlowSetup.text(reply));
        }
    }

    private static void trace() throws Exception {
        DefaultMQProducer producer =
            FlowSetup.quick(new DefaultMQProducer(topic("trace") + "-producer", FlowSetup.hook, true, null));
        producer.start();
        producer.send(message("trace", "traced"));
    }

    private static void namespace() throws Exception {
        DefaultMQProducer producer =
            FlowSetup.quick(new DefaultMQProducer("space", topic("namespace") + "-producer", FlowSetup.hook));
        producer.start();
        producer.send(message("namespace", "spaced"));
    }

    private static void queries() throws Exception {
        Message message = message("queries", "found");
        message.setKeys("the-key");
        producer("queries").send(message);
    }
}
