"""RocketMQ's settings that have no effect here, with the reason, and settings with only one supported value.

A setting of RocketMQ 4.9 is one of three:

    known      a field of a configuration dataclass (or another name of one, see OTHER_NAMES)
    ignored    accepted, with a warning at the start: it tunes something that this implementation does not have
    fixed      it would switch on something that does not exist here: only the value for "off" is accepted

Any other key is refused as a typing error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# Reason -> keys. Remove a key from here when it becomes a field.
_IGNORED = {
    "one event loop serves all requests: there are no thread pools": """
        adminBrokerThreadPoolNums clientCallbackExecutorThreads clientManageThreadPoolNums clientWorkerThreads
        com.rocketmq.remoting.client.worker.size consumerManageThreadPoolNums endTransactionThreadPoolNums
        heartbeatThreadPoolNums processReplyMessageThreadPoolNums pullMessageThreadPoolNums
        putMessageFutureThreadPoolNums putThreadPoolQueueCapacity queryMessageThreadPoolNums sendMessageThreadPoolNums
        serverCallbackExecutorThreads serverSelectorThreads serverWorkerThreads""",
    "Netty's buffers and polling": """
        clientPooledByteBufAllocatorEnable com.rocketmq.remoting.nettyPooledByteBufAllocatorEnable
        serverPooledByteBufAllocatorEnable transferMsgByHeap useEpollNativeSelector""",
    "requests between processes have separate limits here": """
        channelNotActiveInterval clientAsyncSemaphoreValue clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
        clientOnewaySemaphoreValue clientSocketRcvBufSize clientSocketSndBufSize
        com.rocketmq.remoting.client.channel.maxIdleTimeSeconds com.rocketmq.remoting.client.closeSocketIfTimeout
        com.rocketmq.remoting.clientAsyncSemaphoreValue com.rocketmq.remoting.clientOnewaySemaphoreValue
        serverAsyncSemaphoreValue serverOnewaySemaphoreValue""",
    "RocketMQ declares it and never reads it": """
        commercialBaseCount commercialBigCount commercialEnable commercialTimerCount commercialTransCount
        flushConsumerOffsetHistoryInterval highSpeedMode maxDelayTime putMsgIndexHightWater""",
    "RocketMQ 4.9 does not know it either": """
        abortFile checkTransactionMessageEnable enableScheduleMessageSync storeCheckpoint storePathConsumeQueue
        storePathIndex""",
    "files are written, locked and flushed differently: see flushIntervalCommitLog and flushDiskType": """
        bitMapLengthConsumeQueueExt commitCommitLogLeastPages commitCommitLogThoroughInterval
        debugLockEnable destroyMapedFileIntervalForcibly fastFailIfNoBufferInStorePool flushCommitLogLeastPages
        flushCommitLogThoroughInterval flushCommitLogTimed flushConsumeQueueLeastPages
        flushConsumeQueueThoroughInterval flushLeastPagesWhenWarmMapedFile messageIndexSafe redeleteHangedFileInterval
        transientStorePoolSize useReentrantLockWhenPutMessage""",
    "there is no DLedger mode": """
        dLegerGroup dLegerPeers dLegerSelfId enableBatchPush isEnableBatchPush preferredLeaderId
        storePathDLedgerCommitLog""",
    "it belongs to RocketMQ's installation": """
        configStorePath isolateLogEnable productEnvName rocketmq.remoting.version rocketmq.serialize.type""",
    "the statistics of a deleted topic or group are always removed": "autoDeleteUnusedStats",
    "these statistics are always recorded": "diskFallRecorded enableDetailStat enableScheduleMessageStats",
    "delayed messages are delivered by one scheduler": """
        enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked""",
    "light message queues are not implemented": "maxLmqConsumeQueueNum",
    "it is a constant here": """
        adminBrokerThreadPoolQueueCapacity brokerTopicEnable clientManagerThreadPoolQueueCapacity clusterTopicEnable
        com.rocketmq.remoting.write.buffer.low.water.mark
        consumerManagerThreadPoolQueueCapacity defaultQueryMaxNum deleteConsumeQueueFilesInterval
        endTransactionPoolQueueCapacity expectConsumerNumUseFilter filterDataCleanTimeSpan
        heartbeatThreadPoolQueueCapacity maxErrorRateOfBloomFilter notifyConsumerIdsChangedEnable protectBrokerInterval
        queryThreadPoolQueueCapacity replyThreadPoolQueueCapacity shortPollingTimeMills topicRetentionCheckInterval
        waitTimeMillsInHeartbeatQueue waitTimeMillsInTransactionQueue writeBufferLowWaterMark""",
}
IGNORED = {key: reason for reason, keys in _IGNORED.items() for key in keys.split()}


class Fixed(NamedTuple):
    """The only supported value, and why."""

    value: str
    why: str


FIXED = {
    "clusterTest": Fixed("false", "there is no cluster-test mode: it would answer with routes of other clusters"),
    "duplicationEnable": Fixed("false", "RocketMQ's old replication does not exist here"),
    "enableDLegerCommitLog": Fixed("false", "DLedger has another store format, which is not implemented"),
    "enableControllerMode": Fixed("false", "there is no controller: promote a slave with `gantry admin promote`"),
    "enableLmq": Fixed("false", "light message queues are not implemented"),
    "enableMultiDispatch": Fixed("false", "light message queues are not implemented"),
    "filterServerNums": Fixed("0", "filter servers are programs that a broker starts; this broker never starts any"),
    "messageStorePlugIn": Fixed("", "Java classes can't be loaded here"),
    "rocketmq.broker.multiPathSplitter": Fixed(",", "folders are always separated by a comma"),
    "tls.test.mode.enable": Fixed("false", "there is no built-in certificate: `gantry tls create FOLDER` makes one"),
}

# System properties of the Java process that mean the same as a setting, as keys of a properties file; and names that
# settings had before RocketMQ 4.9.
OTHER_NAMES = {
    "com.rocketmq.remoting.client.connect.timeout": "connectTimeoutMillis",
    "com.rocketmq.remoting.socket.backlog": "serverSocketBacklog",
    "com.rocketmq.remoting.socket.rcvbuf.size": "serverSocketRcvBufSize",
    "com.rocketmq.remoting.socket.sndbuf.size": "serverSocketSndBufSize",
    "com.rocketmq.remoting.write.buffer.high.water.mark": "writeBufferHighWaterMark",
    "mapedFileSizeCommitLog": "mappedFileSizeCommitLog",
    "mapedFileSizeConsumeQueue": "mappedFileSizeConsumeQueue",
    "mapedFileSizeConsumeQueueExt": "mappedFileSizeConsumeQueueExt",
    "rmqAddressServerDomain": "rocketmq.namesrv.domain",
    "rmqAddressServerSubGroup": "rocketmq.namesrv.domain.subgroup",
    "rocketmq.home.dir": "rocketmqHome",
    "rocketmq.namesrv.addr": "namesrvAddr",
    "tls.enable": "useTLS",
}


def is_fixed_at(key: str, value: str) -> bool:
    """Whether `value` is the only value of a fixed setting."""
    return value.strip().lower() == FIXED[key].value.lower()


def by_reason(keys: Iterable[str]) -> dict[str, list[str]]:
    """Ignored keys, sorted, by the reason why they are ignored."""
    reasons: dict[str, list[str]] = {}
    for key in sorted(keys):
        reasons.setdefault(IGNORED.get(key, "unknown"), []).append(key)
    return reasons


def explain_ignored(keys: Iterable[str]) -> str:
    """One text for a log line, a status row or a remark."""
    return "; ".join(f"{', '.join(found)} ({reason})" for reason, found in by_reason(keys).items())
