import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends numbered messages one after the other, number n to queue n modulo the number of queues; a send that fails is
 * tried again until it is acknowledged. Arguments: name server, topic, group, count, messages a second (0: no limit),
 * and "turns" when the client shall choose the queues itself. It ends at once when its standard input does.
 */
public final class Produce {
    private static final String[] TAGS = {"TagA", "TagB", "TagC"};

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[3]);
        int rate = Integer.parseInt(args[4]);
        boolean isByTurns = args.length > 5;
        DefaultMQProducer producer = Patience.namespaced(new DefaultMQProducer(args[2]));
        producer.setNamesrvAddr(args[0]);
        producer.setPollNameServerInterval(1000);
        producer.setHeartbeatBrokerInterval(1000);
        Patience.patient(producer);
        producer.start();
        endWithInput();
        Lines.say("STARTED");
        long start = System.nanoTime();
        for (int number = 0; number < count; number++) {
            send(producer, topic, number, isByTurns);
            if (rate > 0) {
                long aheadMs = number * 1000L / rate - (System.nanoTime() - start) / 1_000_000;
                if (aheadMs > 0) {
                    Thread.sleep(aheadMs);
                }
            }
        }
        Lines.say("DONE");
        producer.shutdown();
    }

    private static void endWithInput() {
        Thread watching = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (IOException exception) {
                Lines.say("INPUT", exception.toString());
            }
            Runtime.getRuntime().halt(0);
        });
        watching.setDaemon(true);
        watching.start();
    }

    private static void send(DefaultMQProducer producer, String topic, int number, boolean isByTurns)
        throws InterruptedException {
        String body = "body-" + number + "-\u00e4\u6d88\u606f";
        Message message = new Message(
            topic, TAGS[number % TAGS.length], "key-" + number, body.getBytes(StandardCharsets.UTF_8));
        message.putUserProperty("number", Integer.toString(number));
        while (true) {
            try {
                SendResult result = isByTurns ? producer.send(message) : producer.send(
                    message, (queues, sent, argument) -> queues.get((Integer) argument % queues.size()), number);
                if (result.getSendStatus() == SendStatus.SEND_OK) {
                    Lines.say("ACK", number, result.getMessageQueue().getQueueId(), result.getQueueOffset(),
                        result.getMsgId(), result.getOffsetMsgId());
                    return;
                }
                Lines.say("RETRY", number, result.getSendStatus());
            } catch (InterruptedException exception) {
                throw exception;
            } catch (Exception exception) {
                Lines.say("RETRY", number, exception.toString().replaceAll("\\s", " "));
            }
            Thread.sleep(100);
        }
    }
}
