import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

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
}
