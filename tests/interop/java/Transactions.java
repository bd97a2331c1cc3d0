import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A transactional producer. Number n modulo 5 is its message's fate: 0 committed, 1 rolled back, 2 unknown and committed
 * when asked, 3 unknown and rolled back when asked, 4 the local transaction throws, and it is asked twice before it is
 * committed. With "silent" it answers nothing when asked. Arguments: name server, topic, group, first number, count, and
 * "answer" or "silent"; count 0 only answers.
 */
public final class Transactions {
    private static final String[] TAGS = {"TagA", "TagB", "TagC"};

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        boolean silent = args[5].equals("silent");
        TransactionMQProducer producer = Patience.patient(new TransactionMQProducer(args[2]));
        producer.setNamesrvAddr(args[0]);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                switch ((Integer) argument % 5) {
                    case 0:
                        return LocalTransactionState.COMMIT_MESSAGE;
                    case 1:
                        return LocalTransactionState.ROLLBACK_MESSAGE;
                    case 4:
                        throw new IllegalStateException("local transaction failed");
                    default:
                        return LocalTransactionState.UNKNOW;
                }
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                int number = Integer.parseInt(message.getUserProperty("number"));
                int times = Integer.parseInt(
                    message.getUserProperty(MessageConst.PROPERTY_TRANSACTION_CHECK_TIMES));
                Lines.say("CHECK", number, times, message.getTopic(), message.getTransactionId(),
                    new String(message.getBody(), StandardCharsets.UTF_8));
                if (silent || (number % 5 == 4 && times < 2)) {
                    return LocalTransactionState.UNKNOW;
                }
                return number % 5 == 3 || number % 5 == 1 ? LocalTransactionState.ROLLBACK_MESSAGE
                    : LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        Patience.routed(() -> producer.fetchPublishMessageQueues(topic));
        Lines.say("STARTED");
        int first = Integer.parseInt(args[3]);
        for (int number = first; number < first + Integer.parseInt(args[4]); number++) {
            String body = "body-" + number + "-\u00e4\u6d88\u606f";
            Message message = new Message(
                topic, TAGS[number % TAGS.length], "key-" + number, body.getBytes(StandardCharsets.UTF_8));
            message.putUserProperty("number", Integer.toString(number));
            TransactionSendResult result = producer.sendMessageInTransaction(message, number);
            Lines.say("HALF", number, result.getLocalTransactionState(), result.getMsgId(), result.getQueueOffset());
        }
        Lines.say("DONE");
        Lines.waitForEnd();
        producer.shutdown();
    }
}
