// A push consumer with the client of RocketMQ 5 for Java that is asked by tools: Asked ENDPOINTS. It fails on bodies that begin with "bad".
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.client.apis.*;
import org.apache.rocketmq.client.apis.consumer.*;
import org.apache.rocketmq.client.apis.producer.*;

public class Asked {
    public static void main(String[] a) throws Exception {
        ClientServiceProvider p = ClientServiceProvider.loadService();
        ClientConfiguration c = ClientConfiguration.newBuilder().setEndpoints(a[0]).enableSsl(false).build();
        PushConsumer q = p.newPushConsumerBuilder().setClientConfiguration(c).setConsumerGroup("java-asked")
            .setSubscriptionExpressions(Map.of("normal", new FilterExpression("none", FilterExpressionType.TAG)))
            .setMessageListener(m -> {
                String body = StandardCharsets.UTF_8.decode(m.getBody().duplicate()).toString();
                System.out.println("GOT\t" + body);
                return body.startsWith("bad") ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build();
        System.in.read();
        q.close(); System.exit(0);
    }
}
