import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A push consumer that tells every message and which queues it holds. A message with the property "later" is put off
 * at its first delivery. Arguments: name server, topic, group, subscription
 * expression, "orderly" or "concurrently".
 */
public final class Consume {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        DefaultMQPushConsumer consumer = Patience.pushConsumer(args[0], args[2]);
        consumer.subscribe(topic, args[3]);
        if (args[4].equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(Consume::tell);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(Consume::tell);
                return messages.stream().anyMatch(Consume::isPutOff)
                    ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        Lines.say("STARTED");
        Thread watch = new Thread(() -> tellQueues(consumer, topic));
        watch.setDaemon(true);
        watch.start();
        Lines.waitForEnd();
        consumer.shutdown();
    }

    private static boolean isPutOff(MessageExt message) {
        return message.getUserProperty("later") != null && message.getReconsumeTimes() == 0;
    }

    private static void tell(MessageExt message) {
        Lines.say("GOT", message.getUserProperty("number"), message.getQueueId(), message.getQueueOffset(),
            message.getTags(), message.getKeys(), new String(message.getBody(), StandardCharsets.UTF_8),
            message.getMsgId(), message.getTopic());
    }

    private static void tellQueues(DefaultMQPushConsumer consumer, String topic) {
        String told = "";
        while (true) {
            List<String> held = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable()
                .keySet().stream().filter(queue -> queue.getTopic().equals(consumer.withNamespace(topic)))
                .map(queue -> Integer.toString(queue.getQueueId())).sorted().collect(Collectors.toList());
            String now = String.join(",", held);
            if (!now.equals(told)) {
                Lines.say("QUEUES", now);
                told = now;
            }
            try {
                Thread.sleep(100);
            } catch (InterruptedException exception) {
                return;
            }
        }
    }
}
