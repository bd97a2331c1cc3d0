import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A push consumer whose queues the broker assigns (RocketMQ 5): it pops when the group's mode is POP. Every tenth
 * message fails at its first delivery. Arguments: name server, topic, group.
 */
public final class PopConsume {
    public static void main(String[] args) throws Exception {
        DefaultMQPushConsumer consumer = Patience.pushConsumer(args[0], args[2]);
        consumer.setClientRebalance(false);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(PopConsume::tell);
            return messages.stream().anyMatch(PopConsume::fails)
                ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Lines.say("STARTED");
        Lines.waitForEnd();
        consumer.shutdown();
    }

    private static boolean fails(MessageExt message) {
        return Integer.parseInt(message.getUserProperty("number")) % 10 == 0 && message.getReconsumeTimes() == 0;
    }

    private static void tell(MessageExt message) {
        Lines.say("POPPED", message.getUserProperty("number"), message.getReconsumeTimes(),
            message.getProperty("POP_CK") == null ? "pulled" : "popped", message.getTopic(),
            new String(message.getBody(), StandardCharsets.UTF_8));
    }
}
