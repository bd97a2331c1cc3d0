import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends one message after the other, and consumes them, until its input ends; all settings are the client's own but
 * one. Tells when each send began and ended, and when each message came. Arguments: name server, topic, group, ms
 * between two looks at the routes (0: the client's own).
 */
public final class Steady {
    private static final int PAUSE_MS = 20;
    private static volatile boolean isEnding;

    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> Lines.say(
                "GOT", System.currentTimeMillis(), new String(message.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        DefaultMQProducer producer = new DefaultMQProducer(args[2] + "-producer");
        producer.setNamesrvAddr(args[0]);
        int pollMs = Integer.parseInt(args[3]);
        if (pollMs > 0) {
            consumer.setPollNameServerInterval(pollMs);
            producer.setPollNameServerInterval(pollMs);
        }
        consumer.setInstanceName("consumer" + pollMs); // else both share what looks at the routes
        producer.start();
        consumer.start();
        Thread sender = new Thread(() -> send(producer, args[1]));
        sender.start();
        Lines.say("STARTED");
        Lines.waitForEnd();
        isEnding = true;
        sender.join();
    }

    private static void send(DefaultMQProducer producer, String topic) {
        for (int number = 0; !isEnding; number++) {
            long began = System.currentTimeMillis();
            String told;
            try {
                byte[] body = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
                SendResult result = producer.send(new Message(topic, body));
                boolean isSafe = result.getSendStatus() == SendStatus.SEND_OK;
                told = isSafe ? result.getMessageQueue().getBrokerName() : "";
            } catch (Exception exception) {
                told = "";
            }
            Lines.say("SENT", began, System.currentTimeMillis(), number, told);
            try {
                Thread.sleep(PAUSE_MS);
            } catch (InterruptedException exception) {
                return;
            }
        }
    }
}
