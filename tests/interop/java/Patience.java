import java.util.concurrent.Callable;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** A busy machine takes longer than the 3 s that a client gives a request. */
final class Patience {
    static final int LIMIT_MS = 20_000;

    private Patience() {
    }

    static <C extends ClientConfig> C patient(C client) {
        client.setMqClientApiTimeout(LIMIT_MS);
        if (client instanceof DefaultMQProducer) {
            ((DefaultMQProducer) client).setSendMsgTimeout(LIMIT_MS);
        }
        return client;
    }

    /** In the namespace that -Dinterop.namespace names, if it does. */
    static <C extends ClientConfig> C namespaced(C client) {
        String namespace = System.getProperty("interop.namespace");
        if (namespace != null) {
            client.setNamespace(namespace);
        }
        return client;
    }

    /** A consumer of the group that begins with the first message, and tells the broker every second what it does. */
    static DefaultMQPushConsumer pushConsumer(String nameServer, String group) {
        DefaultMQPushConsumer consumer = patient(namespaced(new DefaultMQPushConsumer(group)));
        consumer.setNamesrvAddr(nameServer);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setPersistConsumerOffsetInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    /** What the call returns once the client has the topic's route: it gives up after 3 s if another thread asks. */
    static <T> T routed(Callable<T> call) throws Exception {
        long deadline = System.nanoTime() + LIMIT_MS * 1_000_000L;
        while (true) {
            try {
                return call.call();
            } catch (MQClientException exception) {
                if (!hasNoRoute(exception) || System.nanoTime() > deadline) {
                    throw exception;
                }
                Thread.sleep(100);
            }
        }
    }

    private static boolean hasNoRoute(MQClientException exception) {
        String message = String.valueOf(exception.getMessage());
        return message.contains("No route info of this topic") || message.contains("Can not find Message Queue");
    }
}
