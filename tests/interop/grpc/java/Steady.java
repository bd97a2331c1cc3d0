// One side of a steady traffic: Steady send ENDPOINTS, until its input has something, or Steady receive ENDPOINTS GROUP. A line for
// each message that was acknowledged, or came. It goes on through every failure.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.rocketmq.client.apis.*;
import org.apache.rocketmq.client.apis.consumer.*;
import org.apache.rocketmq.client.apis.message.*;
import org.apache.rocketmq.client.apis.producer.*;

public class Steady {
    static final ClientServiceProvider P = ClientServiceProvider.loadService();
    static void say(String... words) { System.out.println(String.join("\t", words)); }
    interface Work<T> { T run() throws Exception; }
    static <T> T until(Work<T> work) throws Exception {
        while (true)
            try { return work.run(); } catch (Exception e) { say("FAILED", String.valueOf(e.getMessage()).replaceAll("\\s+", " ")); Thread.sleep(300); }
    }
    public static void main(String[] a) throws Exception {
        ClientConfiguration c = ClientConfiguration.newBuilder().setEndpoints(a[1]).enableSsl(false).build();
        if (a[0].equals("send")) send(c); else receive(c, a[2]);
    }
    static void send(ClientConfiguration c) throws Exception {
        Producer p = until(() -> P.newProducerBuilder().setClientConfiguration(c).setTopics("fifo").build());
        for (int n = 0; System.in.available() == 0; n++) {
            String body = "f" + n;
            Message m = P.newMessageBuilder().setTopic("fifo").setBody(body.getBytes(StandardCharsets.UTF_8)).setMessageGroup("g" + n % 3).build();
            until(() -> p.send(m)); say("SENT", body);
            Thread.sleep(20);
        }
        say("DONE"); System.exit(0);
    }
    static void receive(ClientConfiguration c, String group) throws Exception {
        SimpleConsumer s = until(() -> P.newSimpleConsumerBuilder().setClientConfiguration(c).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(Map.of("fifo", FilterExpression.SUB_ALL)).build());
        say("READY");
        while (true) {
            List<MessageView> found = until(() -> s.receive(8, Duration.ofSeconds(10)));
            for (MessageView m : found) {
                say("GOT", StandardCharsets.UTF_8.decode(m.getBody().duplicate()).toString());
                try { s.ack(m); } catch (Exception e) { say("FAILED", String.valueOf(e.getMessage()).replaceAll("\\s+", " ")); }
            }
        }
    }
}
