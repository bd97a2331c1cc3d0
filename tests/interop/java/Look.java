import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Looks messages up: each argument after name server and topic is "key:..." or "id:..." (a unique or an offset id).
 */
public final class Look {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer("LookProducer"));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        for (int index = 2; index < args.length; index++) {
            String what = args[index];
            if (what.startsWith("key:")) {
                String key = what.substring(4);
                QueryResult result = producer.queryMessage(topic, key, 32, 0, System.currentTimeMillis() + 60_000);
                result.getMessageList().forEach(message -> tell(what, message));
            } else if (what.startsWith("id:")) {
                tell(what, producer.viewMessage(topic, what.substring(3)));
            }
        }
        producer.shutdown();
        Lines.say("DONE");
    }

    private static void tell(String what, MessageExt message) {
        Lines.say("FOUND", what, message.getQueueId(), message.getQueueOffset(), message.getTags(), message.getKeys(),
            new String(message.getBody(), StandardCharsets.UTF_8), message.getMsgId());
    }
}
