import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Clients that sign what they send. Arguments: name server, "send" or "consume", topic, group, access key, secret key
 * ("-": unsigned). "send" sends alone, as a batch and one-way, and looks up what it sent, by key and by id; then the
 * same with each further topic, access key and secret key. Its lines say which of them it is, counted from 0.
 */
public final class Acl {
    private static int turn;

    public static void main(String[] args) throws Exception {
        if (args[1].equals("send")) {
            send(args[0], args[2], args[3], hook(args[4], args[5]));
            for (int next = 6; next < args.length; next += 3) {
                turn++;
                send(args[0], args[next], args[3] + turn, hook(args[next + 1], args[next + 2]));
            }
            Lines.say("DONE");
        } else {
            consume(args[0], args[2], args[3], hook(args[4], args[5]));
        }
    }

    private static RPCHook hook(String accessKey, String secretKey) {
        return accessKey.equals("-") ? null : new AclClientRPCHook(new SessionCredentials(accessKey, secretKey));
    }

    private static void send(String namesrv, String topic, String group, RPCHook hook) throws Exception {
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer(group, hook));
        producer.setNamesrvAddr(namesrv);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        Lines.say("STARTED");
        long start = System.currentTimeMillis();
        SendResult[] first = new SendResult[1];
        attempt("single", () -> {
            first[0] = Patience.routed(() -> producer.send(message(topic, 0)));
            return first[0].getSendStatus().toString();
        });
        attempt("batch", () -> producer.send(messages(topic, 1, 4)).getSendStatus().toString());
        attempt("oneway", () -> {
            producer.sendOneway(message(topic, 4));
            return "SENT";
        });
        if (first[0] != null) {
            attempt("byKey", () -> "FOUND" + find(producer, topic, start - 1000));
            attempt("byId", () -> body(producer.viewMessage(topic, first[0].getOffsetMsgId()).getBody()));
        }
        producer.shutdown();
    }

    /** How many messages have the key; the broker's index has a message some time after it was stored. */
    private static int find(DefaultMQProducer producer, String topic, long since) throws Exception {
        long deadline = System.nanoTime() + Patience.LIMIT_MS * 1_000_000L;
        while (true) {
            try {
                long end = System.currentTimeMillis() + 1000;
                return producer.queryMessage(topic, "key-0", 32, since, end).getMessageList().size();
            } catch (MQClientException none) {
                if (System.nanoTime() > deadline) {
                    throw none;
                }
                Thread.sleep(100);
            }
        }
    }

    private static void consume(String namesrv, String topic, String group, RPCHook hook) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(null, group, hook);
        consumer.setNamesrvAddr(namesrv);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> Lines.say("BODY", body(message.getBody()), message.getReconsumeTimes()));
            return messages.get(0).getReconsumeTimes() == 0 && body(messages.get(0).getBody()).equals("body-0")
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER
                : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        Patience.patient(consumer);
        consumer.start();
        Lines.say("STARTED");
        Lines.waitForEnd();
        consumer.shutdown();
    }

    private interface Action {
        String run() throws Exception;
    }

    private static void attempt(String what, Action action) {
        try {
            Lines.say("OK", turn, what, action.run());
        } catch (MQBrokerException exception) {
            Lines.say("REFUSED", turn, what, exception.getResponseCode(), clean(exception.getErrorMessage()));
        } catch (MQClientException exception) {
            String why = exception.getCause() instanceof MQBrokerException // after its retries the client wraps it
                ? ((MQBrokerException) exception.getCause()).getErrorMessage() : exception.getMessage();
            Lines.say("REFUSED", turn, what, exception.getResponseCode(), clean(why));
        } catch (Exception exception) {
            Lines.say("FAILED", turn, what, clean(exception.toString()));
        }
    }

    private static List<Message> messages(String topic, int first, int end) {
        return IntStream.range(first, end).mapToObj(number -> message(topic, number)).collect(Collectors.toList());
    }

    private static Message message(String topic, int number) {
        return new Message(topic, "TagA", "key-" + number, ("body-" + number).getBytes(StandardCharsets.UTF_8));
    }

    private static String body(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static String clean(String text) {
        return String.valueOf(text).replaceAll("\\s+", " ");
    }
}
