import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * The load of store_load.py, put on Apache RocketMQ's DefaultMessageStore without a broker. The same arguments, the same
 * JSON lines: whoever changes the one changes the other.
 *
 * CPU is that of the whole process: its flushing, dispatching, compiling and collecting threads are what it costs, too.
 */
public final class StoreLoad {
    private static final String TOPIC = "BenchLoad";
    private static final String BATCH_TOPIC = "BenchLoadBatch";
    private static final InetSocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);
    private static final long LOOK_NS = 200_000_000L;
    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private final String folder;
    private final int count;
    private final int rounds;
    private final int queues;
    private final int batch;
    private final int group;
    private final byte[] body;
    private DefaultMessageStore store;
    private int made;

    private interface Work {
        void run() throws Exception;
    }

    private StoreLoad(String[] arguments) {
        folder = arguments[1];
        count = Integer.parseInt(arguments[2]);
        rounds = Integer.parseInt(arguments[3]);
        queues = Integer.parseInt(arguments[4]);
        batch = Integer.parseInt(arguments[5]);
        group = Integer.parseInt(arguments[6]);
        body = new byte[Integer.parseInt(arguments[7])];
        new Random(1).nextBytes(body);
    }

    /** stages | fill | open, then FOLDER COUNT ROUNDS QUEUES BATCH GROUP BODY_BYTES. */
    public static void main(String[] arguments) throws Exception {
        StoreLoad load = new StoreLoad(arguments);
        switch (arguments[0]) {
            case "stages":
                load.stages();
                break;
            case "fill":
                load.fill();
                break;
            case "open":
                load.reopen();
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0);
    }

    private void stages() throws Exception {
        open("plain", FlushDiskType.ASYNC_FLUSH);
        appends();
        batches();
        reads();
        queries();
        store.shutdown();
        open("synced", FlushDiskType.SYNC_FLUSH);
        groupCommit();
        store.shutdown();
    }

    /** Write COUNT messages in batches, say so, and wait to be killed. */
    private void fill() throws Exception {
        open("plain", FlushDiskType.ASYNC_FLUSH);
        for (int done = 0; done < count; done += batch) {
            mustBeStored(store.putMessages(newBatch(done / batch % queues)));
        }
        System.out.println("{\"stored\": " + stored() + "}");
        System.in.read();
    }

    private void reopen() throws Exception {
        long wall = System.nanoTime();
        long cpu = SYSTEM.getProcessCpuTime();
        open("plain", FlushDiskType.ASYNC_FLUSH);
        waitDispatched();
        tell("open", (System.nanoTime() - wall) / 1e3, (SYSTEM.getProcessCpuTime() - cpu) / 1e3);
        System.out.println("{\"stored\": " + stored() + "}");
        store.shutdown();
    }

    private void open(String name, FlushDiskType flush) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(folder + "/" + name);
        config.setStorePathCommitLog(folder + "/" + name + "/commitlog");
        config.setFlushDiskType(flush);
        config.setHaListenPort(0);
        config.setOsPageCacheBusyTimeOutMills(60_000);  // a busy machine is no reason to refuse in a benchmark
        store = new DefaultMessageStore(config, new BrokerStatsManager("bench", false),
            (topic, queue, offset, tags, time, bits, properties) -> { }, new BrokerConfig());
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start();
    }

    private void appends() throws Exception {
        List<List<MessageExtBrokerInner>> loads = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            List<MessageExtBrokerInner> load = new ArrayList<>();
            for (int number = 0; number < count; number++) {
                load.add(newMessage());
            }
            loads.add(load);
        }
        loaded("append", "append, dispatched", count, round -> {
            for (MessageExtBrokerInner message : loads.get(round)) {
                mustBeStored(store.putMessage(message));
            }
        });
    }

    private void batches() throws Exception {
        int each = Math.max(count / batch, 1);
        List<List<MessageExtBatch>> loads = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            List<MessageExtBatch> load = new ArrayList<>();
            for (int number = 0; number < each; number++) {
                load.add(newBatch(0));
            }
            loads.add(load);
        }
        loaded("batch", "batch, dispatched", each * batch, round -> {
            for (MessageExtBatch message : loads.get(round)) {
                mustBeStored(store.putMessages(message));
            }
        });
    }

    private interface Round {
        void run(int number) throws Exception;
    }

    /** Once until the puts have returned and once until all of it is in queues and index. */
    private void loaded(String returned, String dispatched, int messages, Round work) throws Exception {
        Cost atReturn = new Cost(messages);
        Cost atEnd = new Cost(messages);
        for (int round = 0; round < rounds; round++) {
            long wall = System.nanoTime();
            long cpu = SYSTEM.getProcessCpuTime();
            work.run(round);
            atReturn.add(System.nanoTime() - wall, SYSTEM.getProcessCpuTime() - cpu);
            waitDispatched();
            atEnd.add(System.nanoTime() - wall, SYSTEM.getProcessCpuTime() - cpu);
        }
        atReturn.tell(returned);
        atEnd.tell(dispatched);
    }

    private void reads() throws Exception {
        long end = store.getMaxOffsetInQueue(BATCH_TOPIC, 0);
        int requests = (int) (end / 32);
        measured("read 32 in order", requests * 32, () -> {
            for (int number = 0; number < requests; number++) {
                read(number * 32L, 32);
            }
        });
        Random chance = new Random(1);
        int each = Math.max(count / 8, 1);
        measured("read 1 at random", each, () -> {
            for (int number = 0; number < each; number++) {
                read((long) (chance.nextDouble() * end), 1);
            }
        });
    }

    private void read(long offset, int wanted) {
        GetMessageResult result = store.getMessage("g", BATCH_TOPIC, 0, offset, wanted, null);
        int found = result.getMessageCount();
        result.release();
        if (found != wanted) {
            throw new IllegalStateException(found + " messages at " + offset + ", not " + wanted);
        }
    }

    private void queries() throws Exception {
        Random chance = new Random(2);
        int each = Math.max(count / 8, 1);
        measured("query by key", each, () -> {
            for (int number = 0; number < each; number++) {
                String key = "order-" + chance.nextInt(count * rounds);
                QueryMessageResult result = store.queryMessage(TOPIC, key, 32, 0, Long.MAX_VALUE);
                int found = result.getMessageBufferList().size();
                result.release();
                if (found == 0) {  // more: the index knows 31 bits of a key
                    throw new IllegalStateException("no message of " + key);
                }
            }
        });
    }

    private void groupCommit() throws Exception {
        measured("group commit", group * 20, () -> {
            for (int number = 0; number < 20; number++) {
                List<CompletableFuture<PutMessageResult>> waiting = new ArrayList<>();
                for (int each = 0; each < group; each++) {
                    waiting.add(store.asyncPutMessage(newMessage()));
                }
                for (CompletableFuture<PutMessageResult> each : waiting) {
                    mustBeStored(each.get());
                }
            }
        });
    }

    /** Rounds of at least LOOK_NS each, so that CPU clocks that tick say something. */
    private void measured(String stage, int units, Work work) throws Exception {
        Cost cost = new Cost(units);
        for (int round = 0; round < rounds; round++) {
            long wall = System.nanoTime();
            long cpu = SYSTEM.getProcessCpuTime();
            int times = 0;
            do {
                work.run();
                times++;
            } while (System.nanoTime() - wall < LOOK_NS);
            cost.add((double) (System.nanoTime() - wall) / times, (double) (SYSTEM.getProcessCpuTime() - cpu) / times);
        }
        cost.tell(stage);
    }

    /** Wall time of the best round; CPU as the mean of the rounds after the first, because its clock ticks. */
    private static final class Cost {
        private final int units;
        private double bestWall = Double.MAX_VALUE;
        private double laterCpu;
        private int added;

        private Cost(int units) {
            this.units = units;
        }

        private void add(double wallNs, double cpuNs) {
            bestWall = Math.min(bestWall, wallNs);
            laterCpu += added++ == 0 ? 0 : cpuNs;
        }

        private void tell(String stage) {
            StoreLoad.tell(stage, bestWall / 1e3 / units, laterCpu / (added - 1) / 1e3 / units);
        }
    }

    private static void tell(String stage, double wallUs, double cpuUs) {
        System.out.println(String.format(Locale.ROOT, "{\"stage\": \"%s\", \"wall_us\": %.3f, \"cpu_us\": %.3f}",
            stage, wallUs, cpuUs));
    }

    private void waitDispatched() throws InterruptedException {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    private long stored() throws InterruptedException {
        waitDispatched();
        long total = 0;
        for (int queue = 0; queue < queues; queue++) {
            total += store.getMaxOffsetInQueue(BATCH_TOPIC, queue);
        }
        return total;
    }

    private static void mustBeStored(PutMessageResult result) {
        if (!result.isOk()) {
            throw new IllegalStateException("not stored: " + result.getPutMessageStatus());
        }
    }

    private static String uniqueId() {
        return UUID.randomUUID().toString().replace("-", "").toUpperCase(Locale.ROOT);
    }

    private MessageExtBrokerInner newMessage() {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        fillIn(message, TOPIC, made % queues);
        message.setBody(body);
        message.setKeys("order-" + made++);
        MessageAccessor.putProperty(message, "UNIQ_KEY", uniqueId());
        message.setTags("TagA");
        MessageAccessor.putProperty(message, "CLUSTER", "DefaultCluster");
        message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(null, "TagA"));
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        return message;
    }

    private MessageExtBatch newBatch(int queue) {
        List<Message> parts = new ArrayList<>();
        for (int number = 0; number < batch; number++) {
            Message part = new Message(BATCH_TOPIC, "TagA", body);
            MessageAccessor.putProperty(part, "UNIQ_KEY", uniqueId());
            parts.add(part);
        }
        MessageExtBatch message = new MessageExtBatch();
        fillIn(message, BATCH_TOPIC, queue);
        message.setBody(MessageDecoder.encodeMessages(parts));
        MessageAccessor.putProperty(message, "CLUSTER", "DefaultCluster");
        return message;
    }

    private static void fillIn(MessageExt message, String topic, int queue) {
        message.setTopic(topic);
        message.setQueueId(queue);
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(HOST);
        message.setStoreHost(HOST);
    }
}
