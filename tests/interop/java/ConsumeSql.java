import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * A push consumer that chooses by an SQL92 condition. Arguments: name server, topic, group, condition, header encoding
 * (JSON or ROCKETMQ). Says REFUSED with the reason when it can't start.
 */
public final class ConsumeSql {
    public static void main(String[] args) throws Exception {
        System.setProperty("rocketmq.serialize.type", args[4]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], MessageSelector.bySql(args[3]));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> Lines.say("GOT", new String(message.getBody(), StandardCharsets.UTF_8)));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            Patience.patient(consumer);
            consumer.start();
        } catch (Exception refused) {
            Lines.say("REFUSED", refused.toString().replaceAll("\\s+", " "));
            consumer.shutdown();
            return;
        }
        Lines.say("STARTED");
        Lines.waitForEnd();
        consumer.shutdown();
    }
}
