import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Flows of producers: every way to send, transactions, requests. */
final class FlowsSending {
    private static final int BURST = 100; // sends that do not wait for each other, and messages of a batch
    private static final String UNICODE = "\u00e4\u6d88\u606f\ud83d\ude80";

    private FlowsSending() {
    }

    /** Keeps the answer to each asynchronous send. */
    private static final class Answers implements SendCallback {
        private final String name;
        private final Map<String, SendResult> results;
        private final CountDownLatch left;

        Answers(String name, Map<String, SendResult> results, CountDownLatch left) {
            this.name = name;
            this.results = results;
            this.left = left;
        }

        @Override
        public void onSuccess(SendResult result) {
            results.put(name, result);
            left.countDown();
        }

        @Override
        public void onException(Throwable exception) {
            Lines.say("FAILED", name, exception);
            left.countDown();
        }
    }

    static Map<String, ?> sends() throws Exception {
        String topic = FlowSetup.named("sends");
        Map<String, Message> sent = new TreeMap<>();
        Map<String, SendResult> results = new ConcurrentHashMap<>();
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        List<MessageQueue> queues = Patience.routed(() -> producer.fetchPublishMessageQueues(topic));
        FlowSetup.Inbox inbox = new FlowSetup.Inbox();
        DefaultMQPushConsumer consumer = FlowSetup.consumer(topic + "-group");
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox);
        consumer.start();
        CountDownLatch asynchronous = new CountDownLatch(3 + BURST);

        results.put("sync", producer.send(named(sent, topic, "sync", "b")));
        producer.send(named(sent, topic, "async", "b"), new Answers("async", results, asynchronous));
        producer.sendOneway(named(sent, topic, "oneway", "b"));
        MessageQueue last = queues.get(queues.size() - 1);
        results.put("queue", producer.send(named(sent, topic, "queue", "b"), last));
        FlowSetup.expect(results.get("queue").getMessageQueue().equals(last), "another queue than", last);
        results.put("selector",
            producer.send(named(sent, topic, "selector", "b"), (all, message, index) -> all.get((Integer) index), 1));
        producer.send(named(sent, topic, "selector-async", "b"), (all, message, index) -> all.get((Integer) index), 2,
            new Answers("selector-async", results, asynchronous));
        producer.sendOneway(named(sent, topic, "selector-oneway", "b"), (all, message, none) -> all.get(0), null);
        for (int number = 0; number < BURST; number++) {
            String name = "burst-" + number;
            producer.send(named(sent, topic, name, "b"), new Answers(name, results, asynchronous));
            producer.sendOneway(named(sent, topic, "oneway-" + number, "b"));
        }
        results.put("batch", producer.send(batch(sent, topic, "batch")));
        results.put("batch-queue", producer.send(batch(sent, topic, "batch-queue"), last));
        producer.send(batch(sent, topic, "batch-async"), new Answers("batch-async", results, asynchronous));
        results.put("compressed", producer.send(named(sent, topic, "compressed", "five kilobytes ".repeat(350))));
        byte[] noise = new byte[1_000_000];
        new Random(1).nextBytes(noise);
        Message large = named(sent, topic, "large", "");
        large.setBody(noise);
        results.put("large", producer.send(large));
        Message described = named(sent, topic, "properties", "b");
        for (int each = 0; each < 100; each++) {
            described.putUserProperty("property-" + each, "p".repeat(90));
        }
        results.put("properties", producer.send(described));
        Message unicode = new Message(topic, "Tag" + UNICODE, UNICODE + " " + UNICODE + "2", FlowSetup.bytes(UNICODE));
        unicode.putUserProperty("case", "unicode");
        unicode.putUserProperty(UNICODE, UNICODE);
        sent.put("unicode", unicode);
        results.put("unicode", producer.send(unicode));
        Message untagged = new Message(topic, null, "", new byte[] {0});
        untagged.putUserProperty("case", "untagged");
        sent.put("untagged", untagged);
        results.put("untagged", producer.send(untagged));
        Message flagged = named(sent, topic, "flagged", "b");
        flagged.setFlag(7);
        flagged.setWaitStoreMsgOK(false);
        results.put("flagged", producer.send(flagged));
        Message delayed = named(sent, topic, "delayed", "b");
        delayed.setDelayTimeLevel(2);
        FlowSetup.expect(producer.send(delayed).getSendStatus() == SendStatus.SEND_OK, "delayed message not taken");

        asynchronous.await();
        List<MessageExt> got = inbox.exactly(sent.size());
        Set<String> places = new TreeSet<>();
        for (MessageExt message : got) {
            check(message, sent.get(message.getUserProperty("case")), results);
            places.add(message.getBrokerName() + message.getQueueId() + "/" + message.getQueueOffset());
        }
        FlowSetup.expect(places.size() == sent.size(), "two messages at one place");
        producer.shutdown();
        consumer.shutdown();
        return Map.of("messages", got.size());
    }

    private static Message named(Map<String, Message> sent, String topic, String name, String body) {
        Message message = new Message(topic, "TagA", "key-" + name, FlowSetup.bytes(body));
        message.putUserProperty("case", name);
        sent.put(name, message);
        return message;
    }

    private static List<Message> batch(Map<String, Message> sent, String topic, String name) {
        List<Message> messages = new ArrayList<>();
        for (int each = 0; each < BURST; each++) {
            messages.add(named(sent, topic, name + "#" + each, "body " + each));
        }
        return messages;
    }

    private static void check(MessageExt got, Message sent, Map<String, SendResult> results) {
        String name = got.getUserProperty("case");
        FlowSetup.expect(Arrays.equals(got.getBody(), sent.getBody()), name, "has another body");
        FlowSetup.expect(String.valueOf(sent.getTags()).equals(String.valueOf(got.getTags())), name, got.getTags());
        FlowSetup.expect(String.valueOf(sent.getKeys()).equals(String.valueOf(got.getKeys())), name, got.getKeys());
        FlowSetup.expect(got.getFlag() == sent.getFlag(), name, got.getFlag());
        Map<String, String> own = new HashMap<>(sent.getProperties());
        own.keySet().removeAll(Set.of("WAIT", "DELAY")); // the broker drops the one and, in Apache's, keeps the other
        boolean hasBatchId = FlowSetup.IS_FIVE && name.contains("#"); // its batch has an id, too, and 4.9 keeps that
        if (hasBatchId) {
            own.remove("UNIQ_KEY");
        }
        own.forEach((key, value) -> FlowSetup.expect(value.equals(got.getProperty(key)), name, key, value));
        if (name.equals("compressed")) {
            FlowSetup.expect(got.getStoreSize() < got.getBody().length, "is stored as it was");
        }
        if (name.equals("delayed")) {
            long delay = got.getStoreTimestamp() - got.getBornTimestamp();
            FlowSetup.expect(delay >= 900, "delayed by", delay, "ms only");
        }
        SendResult result = results.get(name.split("#")[0]);
        if (result != null) {
            int index = name.contains("#") ? Integer.parseInt(name.split("#")[1]) : 0;
            FlowSetup.expect(result.getSendStatus() == SendStatus.SEND_OK, name, result);
            FlowSetup.expect(
                hasBatchId || got.getMsgId().equals(result.getMsgId().split(",")[index]), name, "has another id");
            String offsetId = ((MessageClientExt) got).getOffsetMsgId();
            FlowSetup.expect(offsetId.equals(result.getOffsetMsgId().split(",")[index]), name, offsetId, result);
            FlowSetup.expect(got.getQueueOffset() == result.getQueueOffset() + index, name, "is at another place");
            MessageQueue place = new MessageQueue(got.getTopic(), got.getBrokerName(), got.getQueueId());
            FlowSetup.expect(place.equals(result.getMessageQueue()), name, place, result);
        }
    }

    /** Messages without a wish go to the queues of all brokers in turn. */
    static Map<String, ?> rotation() throws Exception {
        String topic = FlowSetup.named("rotation");
        DefaultMQProducer producer = FlowSetup.producer(topic + "-producer");
        producer.setSendLatencyFaultEnable(true);
        producer.setNotAvailableDuration(new long[7]); // a broker that was slow for a moment is not passed over
        producer.start();
        int queues = Patience.routed(() -> producer.fetchPublishMessageQueues(topic)).size();
        Map<String, Integer> counts = new TreeMap<>();
        for (int number = 0; number < 5 * queues; number++) {
            MessageQueue queue = producer.send(FlowSetup.message(topic, "TagA", number)).getMessageQueue();
            counts.merge(queue.getBrokerName(), 1, Integer::sum);
        }
        FlowSetup.expect(counts.size() == FlowSetup.brokers, counts);
        FlowSetup.expect(Set.copyOf(counts.values()).size() == 1, "not in turn:", counts);
        producer.shutdown();
        return Map.of("brokers", counts);
    }

    /** The port two below the broker's own serves the same. */
    static Map<String, ?> vip() throws Exception {
        String topic = FlowSetup.named("vip");
        DefaultMQProducer producer = FlowSetup.producer(topic + "-producer");
        producer.setVipChannelEnabled(true);
        producer.start();
        for (int number = 0; number < 8; number++) {
            SendResult result = producer.send(FlowSetup.message(topic, "TagA", number));
            FlowSetup.expect(result.getSendStatus() == SendStatus.SEND_OK, result);
        }
        producer.shutdown();
        return Map.of();
    }

    /** By number modulo 4: committed, rolled back, left open and committed when asked, failed in the local part. */
    static Map<String, ?> transactions() throws Exception {
        String topic = FlowSetup.named("transactions");
        int count = 24;
        Set<Integer> asked = ConcurrentHashMap.newKeySet();
        TransactionMQProducer producer =
            FlowSetup.quick(new TransactionMQProducer(topic + "-producer", FlowSetup.hook));
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object number) {
                switch ((Integer) number % 4) {
                    case 0: return LocalTransactionState.COMMIT_MESSAGE;
                    case 1: return LocalTransactionState.ROLLBACK_MESSAGE;
                    case 2: return LocalTransactionState.UNKNOW;
                    default: throw new IllegalStateException("the local part fails");
                }
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                int number = FlowSetup.number(message);
                asked.add(number);
                return number % 4 == 2 ? LocalTransactionState.COMMIT_MESSAGE
                    : LocalTransactionState.ROLLBACK_MESSAGE;
            }
        });
        producer.start();
        FlowSetup.Inbox inbox = new FlowSetup.Inbox();
        DefaultMQPushConsumer consumer = FlowSetup.consumer(topic + "-group");
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener(inbox);
        consumer.start();
        for (int number = 0; number < count; number++) {
            producer.sendMessageInTransaction(FlowSetup.message(topic, "TagA", number), number);
        }
        List<MessageExt> got = inbox.exactly(count / 2);
        for (MessageExt message : got) {
            FlowSetup.expect(FlowSetup.number(message) % 2 == 0, "not committed:", FlowSetup.number(message));
            FlowSetup.expect(message.getTransactionId() != null, "no transaction id");
        }
        for (int number = 2; number < count; number += 4) {
            FlowSetup.expect(asked.contains(number), "nobody asked about", number);
        }
        producer.shutdown();
        consumer.shutdown();
        return Map.of("asked", new TreeSet<>(asked));
    }

    static Map<String, ?> requests() throws Exception {
        String topic = FlowSetup.named("requests");
        DefaultMQProducer asks = FlowSetup.started(topic + "-asks");
        DefaultMQProducer answers = FlowSetup.started(topic + "-answers");
        DefaultMQPushConsumer consumer = FlowSetup.consumer(topic + "-group");
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt request : messages) {
                try {
                    answers.send(MessageUtil.createReplyMessage(
                        request, FlowSetup.bytes("re: " + FlowSetup.text(request))), 5000);
                } catch (Exception exception) {
                    Lines.say("FAILED", "reply", exception);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        int count = 16;
        for (int number = 0; number < count; number++) {
            Message reply = asks.request(FlowSetup.message(topic, "TagA", number), 20_000);
            FlowSetup.expect(FlowSetup.text(reply).equals("re: body-" + number), FlowSetup.text(reply));
        }
        Set<String> replies = ConcurrentHashMap.newKeySet(); // a request that the client sends again is answered again
        for (int number = 0; number < count; number++) {
            asks.request(FlowSetup.message(topic, "TagA", number), new RequestCallback() {
                @Override
                public void onSuccess(Message reply) {
                    replies.add(FlowSetup.text(reply));
                }

                @Override
                public void onException(Throwable exception) {
                    Lines.say("FAILED", "request", exception);
                }
            }, 20_000);
        }
        FlowSetup.await(() -> replies.size() >= count, "replies", replies);
        FlowSetup.expect(replies.size() == count, replies);
        asks.shutdown();
        answers.shutdown();
        consumer.shutdown();
        return Map.of("replies", 2 * count);
    }
}
