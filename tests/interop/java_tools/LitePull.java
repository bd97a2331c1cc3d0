import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Polls as many messages as it is told, commits, and ends. Arguments: name server, topic, group, count. */
public final class LitePull {
    public static void main(String[] args) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        Patience.patient(consumer);
        consumer.start();
        Lines.say("STARTED");
        int left = Integer.parseInt(args[3]);
        while (left > 0) {
            for (MessageExt message : consumer.poll(1000)) {
                Lines.say("GOT", message.getUserProperty("number"), message.getQueueId(), message.getQueueOffset(),
                    message.getTags(), message.getKeys(), new String(message.getBody(), StandardCharsets.UTF_8),
                    message.getMsgId());
                left--;
            }
        }
        consumer.commitSync();
        Lines.say("DONE");
        consumer.shutdown();
    }
}
