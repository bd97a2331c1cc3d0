// Tags, SQL and dead letters with the client of RocketMQ 5 for Java, over TLS; a line for each thing that it saw. It fails on one message
// until its input has something.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.rocketmq.client.apis.*;
import org.apache.rocketmq.client.apis.consumer.*;
import org.apache.rocketmq.client.apis.message.*;
import org.apache.rocketmq.client.apis.producer.*;

public class Filters {
    static final ClientServiceProvider P = ClientServiceProvider.loadService();
    static String text(MessageView m) { return StandardCharsets.UTF_8.decode(m.getBody().duplicate()).toString(); }
    static synchronized void say(Object... w) { StringJoiner j = new StringJoiner("\t"); for (Object o : w) j.add(String.valueOf(o)); System.out.println(j); }
    static void receive(ClientConfiguration c, String group, FilterExpression wanted, int count) throws Exception {
        SimpleConsumer s = P.newSimpleConsumerBuilder().setClientConfiguration(c).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(Map.of("normal", wanted)).build();
        long end = System.currentTimeMillis() + 120000;
        for (int got = 0; got < count && System.currentTimeMillis() < end;)
            for (MessageView m : s.receive(16, Duration.ofSeconds(20))) { say("GOT", group, text(m)); s.ack(m); got++; }
        for (MessageView m : s.receive(16, Duration.ofSeconds(20))) say("GOT", group, text(m));
        s.close();
    }
    public static void main(String[] a) throws Exception {
        ClientConfiguration c = ClientConfiguration.newBuilder().setEndpoints(a[0]).enableSsl(true).build();
        Producer p = P.newProducerBuilder().setClientConfiguration(c).setTopics("normal").build();
        for (int n = 0; n < 12; n++)
            p.send(P.newMessageBuilder().setTopic("normal").setBody(("m" + n).getBytes(StandardCharsets.UTF_8))
                .setTag(n % 2 == 0 ? "even" : "odd").addProperty("n", String.valueOf(n)).build());
        receive(c, "java-tag", new FilterExpression("even || none", FilterExpressionType.TAG), 6);
        receive(c, "java-sql", new FilterExpression("n BETWEEN 3 AND 5 AND TAGS = 'odd'", FilterExpressionType.SQL92), 2);
        PushConsumer q = P.newPushConsumerBuilder().setClientConfiguration(c).setConsumerGroup("java-dead")
            .setSubscriptionExpressions(Map.of("normal", new FilterExpression("n = 7", FilterExpressionType.SQL92)))
            .setMessageListener(m -> { say("FAIL", text(m), m.getDeliveryAttempt()); return ConsumeResult.FAILURE; }).build();
        System.in.read();
        q.close(); p.close(); say("DONE"); System.exit(0);
    }
}
