// Sends every kind of message with the client of RocketMQ 5 for Java, consumes all, and prints what it saw, a line each.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.rocketmq.client.apis.*;
import org.apache.rocketmq.client.apis.consumer.*;
import org.apache.rocketmq.client.apis.message.*;
import org.apache.rocketmq.client.apis.producer.*;

public class Flows {
    static final ClientServiceProvider P = ClientServiceProvider.loadService();
    static String text(MessageView m) { return StandardCharsets.UTF_8.decode(m.getBody().duplicate()).toString(); }
    static synchronized void say(Object... w) { StringJoiner j = new StringJoiner("\t"); for (Object o : w) j.add(String.valueOf(o)); System.out.println(j); }
    static MessageBuilder made(String topic, String body) {
        return P.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8)).setTag("tag").setKeys("k1", "k2").addProperty("a", "b");
    }
    public static void main(String[] a) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((t, e) -> { e.printStackTrace(); System.exit(1); });  // else the client's threads go on
        ClientConfiguration c = ClientConfiguration.newBuilder().setEndpoints(a[0]).enableSsl(a.length > 1).build();
        Producer p = P.newProducerBuilder().setClientConfiguration(c).setTopics("normal", "fifo", "delay", "tx")
            .setTransactionChecker(m -> { say("CHECK", text(m)); return TransactionResolution.COMMIT; }).build();
        for (int n = 0; n < 20; n++) p.send(made("normal", "n" + n).build());
        for (int n = 0; n < 12; n++) p.send(made("fifo", "f" + n).setMessageGroup("g" + n % 3).build());
        SendReceipt r = p.send(made("delay", "recalled").setDeliveryTimestamp(System.currentTimeMillis() + 8000).build());
        say("RECALLED", p.recallMessage("delay", r.getRecallHandle()).getMessageId().equals(r.getMessageId()));
        p.send(made("delay", "d0").setDeliveryTimestamp(System.currentTimeMillis() + 9000).build());
        for (String end : new String[] {"commit", "rollback", "open"}) {
            Transaction t = p.beginTransaction();
            p.send(made("tx", end).build(), t);
            if (end.equals("commit")) t.commit();
            if (end.equals("rollback")) t.rollback();
        }
        String[] topics = {"normal", "fifo", "delay", "tx"}; int[] counts = {20, 12, 1, 2};
        for (int i = 0; i < 4; i++) {
            SimpleConsumer s = P.newSimpleConsumerBuilder().setClientConfiguration(c).setConsumerGroup("java-" + topics[i])
                .setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(Map.of(topics[i], FilterExpression.SUB_ALL)).build();
            long end = System.currentTimeMillis() + 60000;
            for (int got = 0; got < counts[i] && System.currentTimeMillis() < end;)
                for (MessageView m : s.receive(16, Duration.ofSeconds(20))) {
                    if (text(m).equals("n0") && m.getDeliveryAttempt() == 1) {
                        s.changeInvisibleDuration(m, Duration.ofSeconds(10)); say("LATER", text(m)); continue;
                    }
                    say("GOT", topics[i], text(m), m.getMessageGroup().orElse(""), m.getDeliveryAttempt()); s.ack(m); got++;
                }
            s.close();
        }
        AtomicInteger pushed = new AtomicInteger();
        PushConsumer q = P.newPushConsumerBuilder().setClientConfiguration(c).setConsumerGroup("java-push")
            .setSubscriptionExpressions(Map.of("fifo", FilterExpression.SUB_ALL))
            .setMessageListener(m -> { say("PUSH", text(m)); pushed.incrementAndGet(); return ConsumeResult.SUCCESS; }).build();
        long end = System.currentTimeMillis() + 30000;
        while (pushed.get() < 12 && System.currentTimeMillis() < end) Thread.sleep(100);
        q.close(); p.close(); say("DONE"); System.exit(0);
    }
}
