import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends one traced message and consumes it traced; then reads, as RocketMQ's tools do, the trace text given as the last
 * argument. Arguments: name server, topic, group, trace text (0x01 and 0x02 written as ^ and ~).
 */
public final class Traced {
    public static void main(String[] args) throws Exception {
        for (TraceContext context
            : TraceDataEncoder.decoderFromTraceDataString(args[3].replace('^', '\u0001').replace('~', '\u0002'))) {
            Lines.say("DECODED", context.getTraceType(), context.getGroupName(),
                context.getTraceBeans().get(0).getMsgId(), context.getTraceBeans().get(0).getKeys(),
                context.isSuccess(), context.getCostTime(), context.getContextCode());
        }
        CountDownLatch consumed = new CountDownLatch(1);
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(args[2], null, new AllocateMessageQueueAveragely(), true, null);
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            consumed.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        DefaultMQProducer producer = Patience.patient(new DefaultMQProducer(args[2] + "-producer", null, true, null));
        producer.setNamesrvAddr(args[0]);
        producer.start();
        byte[] body = "traced".getBytes(StandardCharsets.UTF_8);
        Lines.say("SENT", producer.send(new Message(args[1], "TagA", "key-t", body)).getMsgId());
        consumed.await();
        Thread.sleep(1500);
        producer.shutdown();
        consumer.shutdown();
        Lines.say("DONE");
    }
}
