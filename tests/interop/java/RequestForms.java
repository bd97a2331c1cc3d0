import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * "answer": replies to every request of a topic with "re: " and its body; to those whose body begins with "mute" not at
 * all, to those that begin with "long" with 100 000 letters. "ask": requests in every form of the client, one that nobody
 * answers at the end. Arguments: name server, topic, group, "answer" or "ask".
 */
public final class RequestForms {
    private static final int EACH = 50;

    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer(args[2] + "-producer"));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        if (args[3].equals("answer")) {
            answer(producer, args[0], args[1], args[2]);
        } else {
            ask(producer, args[1]);
        }
        producer.shutdown();
    }

    private static void answer(DefaultMQProducer producer, String namesrv, String topic, String group) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt request : messages) {
                String body = text(request);
                if (body.startsWith("mute")) {
                    continue;
                }
                String reply = body.startsWith("long") ? "x".repeat(100_000) : "re: " + body;
                try {
                    Message message = MessageUtil.createReplyMessage(request, reply.getBytes(StandardCharsets.UTF_8));
                    Lines.say("REPLIED", body, producer.send(message).getSendStatus());
                } catch (Exception exception) {
                    Lines.say("FAILED", body, exception.toString().replaceAll("\\s", " "));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        Patience.patient(consumer);
        consumer.start();
        Lines.say("STARTED");
        Lines.waitForEnd();
        consumer.shutdown();
    }

    private static void ask(DefaultMQProducer producer, String topic) throws Exception {
        Lines.say("STARTED");
        for (int number = 0; number < EACH; number++) {
            String body = "selector-" + number;
            tell(body, producer.request(
                message(topic, body), (queues, sent, argument) -> queues.get(0), null, Patience.LIMIT_MS));
            body = "plain-" + number;
            tell(body, producer.request(message(topic, body), Patience.LIMIT_MS));
        }
        MessageQueue queue = Patience.routed(() -> producer.fetchPublishMessageQueues(topic)).get(0);
        tell("queue", producer.request(message(topic, "queue"), queue, Patience.LIMIT_MS));
        tell("long", producer.request(message(topic, "long"), queue, Patience.LIMIT_MS));
        CountDownLatch answered = new CountDownLatch(EACH);
        for (int number = 0; number < EACH; number++) {
            String body = "async-" + number;
            producer.request(message(topic, body), queue, new RequestCallback() {
                @Override
                public void onSuccess(Message reply) {
                    tell(body, reply);
                    answered.countDown();
                }

                @Override
                public void onException(Throwable exception) {
                    Lines.say("FAILED", body, exception.toString().replaceAll("\\s", " "));
                    answered.countDown();
                }
            }, Patience.LIMIT_MS);
        }
        answered.await();
        try {
            tell("mute", producer.request(message(topic, "mute"), queue, 1000));
        } catch (RequestTimeoutException exception) {
            Lines.say("TIMEOUT", "mute");
        }
        Lines.say("DONE");
    }

    private static Message message(String topic, String body) {
        return new Message(topic, "", body.getBytes(StandardCharsets.UTF_8));
    }

    private static void tell(String body, Message reply) {
        Lines.say("REPLY", body, reply == null ? "null" : text(reply));
    }

    private static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
