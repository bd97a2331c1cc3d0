import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/** What the flows share: where the cluster is, who they are, clients with short intervals, and how they wait. */
final class FlowSetup {
    static final int WAIT_S = 120; // a bound for what hangs, not a promise
    /** Some habits of the client changed with 5.0: where this is asked, it is said which. */
    static final boolean IS_FIVE = MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION).startsWith("V5");
    static String namesrv;
    static String suffix;
    static int brokers;
    static RPCHook hook;

    private FlowSetup() {
    }

    /** Arguments: name server, suffix of topics and groups, number of brokers, access key, secret key ("-": none). */
    static void read(String[] args) {
        namesrv = args[0];
        suffix = args[1];
        brokers = Integer.parseInt(args[2]);
        hook = args[3].equals("-") ? null : new AclClientRPCHook(new SessionCredentials(args[3], args[4]));
    }

    static String named(String flow) {
        return "Flow-" + flow + "-" + suffix;
    }

    static <C extends ClientConfig> C quick(C client) {
        client.setNamesrvAddr(namesrv);
        client.setPollNameServerInterval(1000);
        client.setHeartbeatBrokerInterval(1000);
        client.setPersistConsumerOffsetInterval(500);
        Patience.patient(client);
        return client;
    }

    static DefaultMQProducer producer(String group) {
        return quick(new DefaultMQProducer(group, hook));
    }

    static DefaultMQProducer started(String group) throws Exception {
        DefaultMQProducer producer = producer(group);
        producer.start();
        return producer;
    }

    /** From the first message on; not started. */
    static DefaultMQPushConsumer consumer(String group) {
        DefaultMQPushConsumer consumer =
            quick(new DefaultMQPushConsumer(group, hook, new AllocateMessageQueueAveragely()));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(4);
        return consumer;
    }

    static Message message(String topic, String tag, int number) {
        Message message = new Message(topic, tag, "key-" + number, bytes("body-" + number));
        message.putUserProperty("number", Integer.toString(number));
        return message;
    }

    static int number(Message message) {
        return Integer.parseInt(message.getUserProperty("number"));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static void expect(boolean holds, Object... otherwise) {
        if (!holds) {
            StringBuilder said = new StringBuilder();
            for (Object part : otherwise) {
                said.append(part).append(' ');
            }
            throw new AssertionError(said.toString());
        }
    }

    static void await(BooleanSupplier condition, Object... what) throws InterruptedException {
        awaitFor(WAIT_S, condition, what);
    }

    static void awaitFor(int seconds, BooleanSupplier condition, Object... what) throws InterruptedException {
        long deadline = System.nanoTime() + seconds * 1_000_000_000L;
        while (!condition.getAsBoolean()) {
            expect(System.nanoTime() < deadline, "waited " + seconds + " s for", List.of(what));
            Thread.sleep(20);
        }
    }

    interface Call<T> {
        T run() throws Exception;
    }

    /** What the call returns once it no longer fails: what was just made is not known everywhere at once. */
    static <T> T eventually(Call<T> call) throws Exception {
        long deadline = System.nanoTime() + WAIT_S * 1_000_000_000L;
        while (true) {
            try {
                return call.run();
            } catch (Exception exception) {
                if (System.nanoTime() > deadline) {
                    throw exception;
                }
                Thread.sleep(100);
            }
        }
    }

    /** Keeps what a consumer got. */
    static final class Inbox implements MessageListenerConcurrently {
        private final List<MessageExt> messages = new ArrayList<>();

        @Override
        public ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> some, ConsumeConcurrentlyContext context) {
            add(some);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }

        synchronized void add(List<MessageExt> some) {
            messages.addAll(some);
        }

        synchronized List<MessageExt> all() {
            return new ArrayList<>(messages);
        }

        /** All messages, once there are `count`, and half a second later: none may come twice. */
        List<MessageExt> exactly(int count) throws InterruptedException {
            await(() -> all().size() >= count, count, "messages; there are", this);
            Thread.sleep(500);
            expect(all().size() == count, "got", all().size(), "messages instead of", count, this);
            return all();
        }

        @Override
        public String toString() {
            StringBuilder bodies = new StringBuilder();
            for (MessageExt message : all()) {
                String body = text(message);
                bodies.append(body, 0, Math.min(20, body.length())).append(',');
            }
            return bodies.toString();
        }
    }
}
