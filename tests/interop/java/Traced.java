import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQClientException;
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
            Patience.patient(new DefaultMQPushConsumer(args[2], null, new AllocateMessageQueueAveragely(), true, null));
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
        String sent = producer.send(new Message(args[1], "TagA", "key-t", body)).getMsgId();
        Lines.say("SENT", sent);
        consumed.await();
        long deadline = System.nanoTime() + FlowSetup.WAIT_S * 1_000_000_000L;
        while (told(producer, sent) < 3 && System.nanoTime() < deadline) { // what is not sent by the end is lost
            Thread.sleep(100);
        }
        producer.shutdown();
        consumer.shutdown();
        Lines.say("DONE");
    }

    /** How many records of a message's trace the broker has. */
    private static int told(DefaultMQProducer producer, String messageId) throws InterruptedException {
        try {
            long end = System.currentTimeMillis() + 60_000;
            return producer.queryMessage("RMQ_SYS_TRACE_TOPIC", messageId, 32, 0, end).getMessageList().stream()
                .map(trace -> new String(trace.getBody(), StandardCharsets.UTF_8))
                .mapToInt(text -> TraceDataEncoder.decoderFromTraceDataString(text).size()).sum();
        } catch (MQClientException exception) {
            return 0; // the first trace makes the topic
        }
    }
}
