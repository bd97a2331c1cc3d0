import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Flows of consumers that ask when they want to: lite pull, both ways, and the old pull consumer. */
final class FlowsPulling {
    private static final int EACH = 10;

    private FlowsPulling() {
    }

    private static int fill(String topic) throws Exception {
        DefaultMQProducer producer = FlowSetup.started(topic + "-producer");
        List<MessageQueue> queues = Patience.routed(() -> producer.fetchPublishMessageQueues(topic));
        for (int number = 0; number < EACH * queues.size(); number++) {
            producer.send(FlowSetup.message(topic, "Tag" + "AB".charAt(number / queues.size() % 2), number),
                queues.get(number % queues.size()));
        }
        producer.shutdown();
        return EACH * queues.size();
    }

    private static DefaultLitePullConsumer lite(String group) {
        DefaultLitePullConsumer consumer = FlowSetup.quick(new DefaultLitePullConsumer(group, FlowSetup.hook));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setAutoCommit(false);
        return consumer;
    }

    private interface Seek {
        void run() throws Exception;
    }

    private static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count) throws Exception {
        return poll(consumer, count, () -> { });
    }

    /**
     * Polls until `count` messages have come. A pull task that a seek cancels after it has begun can take the offset
     * sought and pull nothing from it (client: nextPullOffset before isCancelled). Where nothing comes, `seek` is called
     * again.
     */
    private static List<MessageExt> poll(DefaultLitePullConsumer consumer, int count, Seek seek) throws Exception {
        List<MessageExt> got = new ArrayList<>();
        long deadline = System.nanoTime() + FlowSetup.WAIT_S * 1_000_000_000L;
        while (got.size() < count) {
            FlowSetup.expect(System.nanoTime() < deadline, got.size(), "messages instead of", count);
            got.addAll(consumer.poll(5000));
            if (got.isEmpty()) {
                seek.run();
            }
        }
        FlowSetup.expect(got.size() == count, got.size(), "messages instead of", count);
        return got;
    }

    static Map<String, ?> liteSubscribe() throws Exception {
        String topic = FlowSetup.named("lite-subscribe");
        int count = fill(topic);
        Set<Integer> numbers = new TreeSet<>();
        DefaultLitePullConsumer first = lite(topic + "-group");
        first.setPullBatchSize(5);
        first.subscribe(topic, "*");
        first.start();
        poll(first, count).forEach(message -> numbers.add(FlowSetup.number(message)));
        FlowSetup.expect(numbers.size() == count, numbers);
        first.commitSync();
        first.shutdown(); // what was committed is told to the broker at the end, too
        DefaultLitePullConsumer second = lite(topic + "-group");
        second.subscribe(topic, "*");
        second.start();
        FlowSetup.expect(second.poll(2000).isEmpty(), "committed messages came again");
        for (MessageQueue queue : second.fetchMessageQueues(topic)) {
            FlowSetup.expect(second.committed(queue) == EACH, queue, second.committed(queue));
        }
        second.shutdown();
        DefaultLitePullConsumer selecting = lite(topic + "-selecting");
        selecting.subscribe(topic, MessageSelector.bySql("number < 4"));
        selecting.start();
        poll(selecting, 4);
        selecting.shutdown();
        return Map.of("messages", count);
    }

    static Map<String, ?> liteAssign() throws Exception {
        String topic = FlowSetup.named("lite-assign");
        int count = fill(topic);
        DefaultLitePullConsumer consumer = lite(topic + "-group");
        consumer.start();
        Collection<MessageQueue> queues = consumer.fetchMessageQueues(topic);
        FlowSetup.expect(queues.size() == count / EACH, queues);
        Set<String> brokers = new HashSet<>();
        queues.forEach(queue -> brokers.add(queue.getBrokerName()));
        FlowSetup.expect(brokers.size() == FlowSetup.brokers, brokers);
        consumer.assign(queues);
        poll(consumer, count);
        MessageQueue one = queues.iterator().next();
        Seek seven = () -> consumer.seek(one, 7);
        seven.run();
        for (MessageExt message : poll(consumer, EACH - 7, seven)) {
            FlowSetup.expect(message.getQueueOffset() >= 7, message.getQueueOffset());
        }
        Seek begin = () -> consumer.seekToBegin(one);
        begin.run();
        poll(consumer, EACH, begin);
        consumer.seekToEnd(one);
        FlowSetup.expect(consumer.poll(1000).isEmpty(), "messages from the end on");
        consumer.pause(queues);
        begin.run();
        FlowSetup.expect(consumer.poll(1000).isEmpty(), "messages of a paused queue");
        consumer.resume(queues);
        poll(consumer, EACH, begin);
        FlowSetup.expect(consumer.offsetForTimestamp(one, 0L) == 0, "offset of the beginning");
        FlowSetup.expect(consumer.offsetForTimestamp(one, System.currentTimeMillis() + 60_000) >= EACH - 1, "of the end");
        consumer.commitSync();
        FlowSetup.await(() -> {
            try {
                return consumer.committed(one) == EACH;
            } catch (Exception exception) {
                return false;
            }
        }, "committed offset");
        consumer.shutdown();
        return Map.of("queues", queues.size());
    }

    static Map<String, ?> pull() throws Exception {
        String topic = FlowSetup.named("pull");
        String group = topic + "-group";
        int count = fill(topic);
        DefaultMQPullConsumer consumer = FlowSetup.quick(new DefaultMQPullConsumer(group, FlowSetup.hook));
        consumer.setRegisterTopics(Set.of(topic)); // or the group would not be known to the brokers
        consumer.start();
        Set<MessageQueue> queues = consumer.fetchSubscribeMessageQueues(topic);
        int got = 0;
        MessageSelector selector = MessageSelector.bySql("number IS NOT NULL AND TAGS = 'TagB'");
        MessageQueue one = queues.iterator().next();
        FlowSetup.eventually(() -> consumer.pull(one, selector, 0, 32)); // after the first heartbeat told of versions
        for (MessageQueue queue : queues) {
            FlowSetup.expect(consumer.minOffset(queue) == 0 && consumer.maxOffset(queue) == EACH, "bounds", queue);
            FlowSetup.expect(consumer.searchOffset(queue, 0) == 0, "search", queue);
            FlowSetup.expect(consumer.earliestMsgStoreTime(queue) > 0, "earliest", queue);
            long offset = 0;
            while (offset < EACH) {
                PullResult result = consumer.pull(queue, "*", offset, 4);
                FlowSetup.expect(result.getPullStatus() == PullStatus.FOUND, result);
                got += result.getMsgFoundList().size();
                offset = result.getNextBeginOffset();
            }
            FlowSetup.expect(consumer.pull(queue, "*", offset, 4).getPullStatus() == PullStatus.NO_NEW_MSG, queue);
            FlowSetup.expect(
                consumer.pull(queue, "*", 100, 4).getPullStatus() == PullStatus.OFFSET_ILLEGAL, "past the end", queue);
            FlowSetup.expect(consumer.pull(queue, "TagA", 0, 32).getMsgFoundList().size() == EACH / 2, "tags", queue);
            FlowSetup.expect(consumer.pull(queue, selector, 0, 32).getMsgFoundList().size() == EACH / 2, "sql", queue);
        }
        FlowSetup.expect(got == count, got, "messages instead of", count);
        for (MessageQueue queue : queues) {
            FlowSetup.await(() -> {
                try { // a client that has not shared the queues out yet forgets their offsets now and then
                    consumer.updateConsumeOffset(queue, 6);
                    consumer.getOffsetStore().persistAll(queues);
                    return consumer.fetchConsumeOffset(queue, true) == 6;
                } catch (Exception exception) {
                    return false;
                }
            }, "the offset told to the broker", queue);
        }
        PullResult held = consumer.pullBlockIfNotFound(one, "*", 0, 4);
        FlowSetup.expect(held.getPullStatus() == PullStatus.FOUND, held);
        consumer.sendMessageBack(held.getMsgFoundList().get(0), 1, one.getBrokerName(), group);
        String retryTopic = "%RETRY%" + group;
        MessageQueue retry = new MessageQueue(retryTopic, one.getBrokerName(), 0);
        FlowSetup.eventually(() -> consumer.fetchSubscribeMessageQueues(retryTopic));
        FlowSetup.await(() -> {
            try {
                return consumer.maxOffset(retry) == 1;
            } catch (Exception exception) {
                return false;
            }
        }, "the message given back");
        consumer.shutdown();
        return Map.of("messages", got);
    }
}
