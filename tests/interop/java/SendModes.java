import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;

/**
 * The other ways to send: numbers 0 to 99 as one batch, 100 to 199 asynchronously, 200 to 299 one-way, 300 compressed
 * (its body is long). Arguments: name server, topic.
 */
public final class SendModes {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer("SendModes"));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        List<Message> batch = new ArrayList<>();
        for (int number = 0; number < 100; number++) {
            batch.add(message(topic, number, ""));
        }
        SendResult batchResult = producer.send(batch);
        Lines.say("BATCH", batchResult.getSendStatus(), batchResult.getMsgId().split(",").length,
            batchResult.getOffsetMsgId().split(",").length);
        CountDownLatch answered = new CountDownLatch(100);
        for (int number = 100; number < 200; number++) {
            producer.send(message(topic, number, ""), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    answered.countDown();
                }

                @Override
                public void onException(Throwable exception) {
                    Lines.say("FAILED", exception.toString().replaceAll("\\s", " "));
                    answered.countDown();
                }
            });
        }
        answered.await();
        for (int number = 200; number < 300; number++) {
            producer.sendOneway(message(topic, number, ""));
        }
        Lines.say("LONG", producer.send(message(topic, 300, "x".repeat(100_000))).getSendStatus());
        producer.shutdown();
        Lines.say("DONE");
    }

    private static Message message(String topic, int number, String tail) {
        byte[] body = ("body-" + number + tail).getBytes(StandardCharsets.UTF_8);
        Message message = new Message(topic, "TagA", "key-" + number, body);
        message.putUserProperty("number", Integer.toString(number));
        return message;
    }
}
