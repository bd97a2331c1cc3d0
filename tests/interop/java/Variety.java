import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends what a store can hold, numbered: plain messages of all sizes (long ones are compressed), batches, delayed ones
 * and transactions, whose outcome is by number modulo 3: committed, rolled back, left open. Arguments: name server,
 * topic, first number, and how many plain ones, batches of ten, delayed ones, and transactions.
 */
public final class Variety {
    private static final String[] TAGS = {"TagA", "TagB", "TagC"};

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int number = Integer.parseInt(args[2]);
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer("Variety"));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        Patience.routed(() -> producer.fetchPublishMessageQueues(topic));
        for (int end = number + Integer.parseInt(args[3]); number < end; number++) {
            SendResult result = producer.send(
                message(topic, number), (queues, sent, argument) -> queues.get((Integer) argument % queues.size()),
                number);
            Lines.say("SENT", number, result.getSendStatus(), result.getMsgId());
        }
        for (int end = number + 10 * Integer.parseInt(args[4]); number < end; number += 10) {
            List<Message> batch = new ArrayList<>();
            for (int each = number; each < number + 10; each++) {
                batch.add(message(topic, each));
            }
            String[] ids = sendBatch(producer, batch);
            for (int each = 0; each < 10; each++) {
                Lines.say("SENT", number + each, "SEND_OK", ids[each]);
            }
        }
        for (int end = number + Integer.parseInt(args[5]); number < end; number++) {
            Message message = message(topic, number);
            message.setDelayTimeLevel(1);
            SendResult result = producer.send(message);
            Lines.say("SENT", number, result.getSendStatus(), result.getMsgId());
        }
        producer.shutdown();
        if (Integer.parseInt(args[6]) > 0) {
            transactions(args[0], topic, number, Integer.parseInt(args[6]));
        }
        Lines.say("DONE");
    }

    private static String[] sendBatch(DefaultMQProducer producer, List<Message> batch) throws Exception {
        SendResult result = producer.send(batch);
        return result.getMsgId().split(",");
    }

    private static void transactions(String namesrv, String topic, int first, int count) throws Exception {
        TransactionMQProducer producer = Patience.patient(new TransactionMQProducer("VarietyTransactions"));
        producer.setNamesrvAddr(namesrv);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object number) {
                LocalTransactionState[] states = {LocalTransactionState.COMMIT_MESSAGE,
                    LocalTransactionState.ROLLBACK_MESSAGE, LocalTransactionState.UNKNOW};
                return states[(Integer) number % states.length];
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.UNKNOW;
            }
        });
        producer.start();
        for (int number = first; number < first + count; number++) {
            TransactionSendResult result = producer.sendMessageInTransaction(message(topic, number), number);
            Lines.say("HALF", number, result.getLocalTransactionState(), result.getMsgId(), result.getQueueOffset());
        }
        producer.shutdown();
    }

    private static Message message(String topic, int number) {
        int tail = number % 50 == 0 ? 20_000 : number * 37 % 3000;
        byte[] body = ("body-" + number + "-\u00e4\u6d88\u606f" + "x".repeat(tail)).getBytes(StandardCharsets.UTF_8);
        Message message = new Message(topic, TAGS[number % TAGS.length], "key-" + number + " all", body);
        message.putUserProperty("number", Integer.toString(number));
        return message;
    }
}
