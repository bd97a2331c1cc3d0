import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Asks or answers. Arguments: name server, topic, group, "ask" or "answer", and for "ask" the questions, a message each.
 */
public final class RequestReply {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer(args[2] + "-producer"));
        producer.setNamesrvAddr(args[0]);
        producer.setCompressMsgBodyOverHowmuch(1000);
        producer.start();
        if (args[3].equals("ask")) {
            for (int index = 4; index < args.length; index++) {
                byte[] question = args[index].getBytes(StandardCharsets.UTF_8);
                MessageExt answer = (MessageExt) producer.request(new Message(args[1], "TagA", question), 20_000);
                Lines.say("ANSWER", args[index], new String(answer.getBody(), StandardCharsets.UTF_8),
                    answer.getProperty("CORRELATION_ID"), answer.getBornTimestamp() > 0);
            }
            Lines.say("DONE");
            producer.shutdown();
            return;
        }
        DefaultMQPushConsumer consumer = Patience.patient(new DefaultMQPushConsumer(args[2]));
        consumer.setNamesrvAddr(args[0]);
        consumer.setPullInterval(0);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    String answer = "java answers " + new String(message.getBody(), StandardCharsets.UTF_8);
                    Message reply = MessageUtil.createReplyMessage(message, answer.getBytes(StandardCharsets.UTF_8));
                    Lines.say("REPLIED", producer.send(reply).getSendStatus());
                } catch (Exception exception) {
                    Lines.say("FAILED", exception.toString().replaceAll("\\s", " "));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Lines.say("STARTED");
        Lines.waitForEnd();
        consumer.shutdown();
        producer.shutdown();
    }
}
