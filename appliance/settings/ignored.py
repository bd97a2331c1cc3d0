"""RocketMQ's settings that do nothing here, and why; and those of which only one value can be had.

A setting of RocketMQ 4.9 is one of three:

    known      a field of a configuration dataclass (or an old name of one, see OTHER_NAMES)
    ignored    accepted and told at the start: it tunes something that this implementation does not have
    fixed      what it would switch on does not exist here: the value that says so is accepted, any other is refused

What is in none of them is a typing error, and refused as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# Reason -> keys. A key that becomes a field is known from then on; its line here goes.
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
    "calls between processes have limits of their own here": """
        channelNotActiveInterval clientAsyncSemaphoreValue clientChannelMaxIdleTimeSeconds clientCloseSocketIfTimeout
        clientOnewaySemaphoreValue clientSocketRcvBufSize clientSocketSndBufSize
        com.rocketmq.remoting.client.channel.maxIdleTimeSeconds com.rocketmq.remoting.client.closeSocketIfTimeout
        com.rocketmq.remoting.clientAsyncSemaphoreValue com.rocketmq.remoting.clientOnewaySemaphoreValue
        serverAsyncSemaphoreValue serverOnewaySemaphoreValue""",
    "RocketMQ declares it and reads it nowhere": """
        commercialBaseCount commercialBigCount commercialEnable commercialTimerCount commercialTransCount
        flushConsumerOffsetHistoryInterval highSpeedMode maxDelayTime putMsgIndexHightWater""",
    "files are written, locked and flushed otherwise: see flushIntervalCommitLog and flushDiskType": """
        bitMapLengthConsumeQueueExt commitCommitLogLeastPages commitCommitLogThoroughInterval
        debugLockEnable destroyMapedFileIntervalForcibly fastFailIfNoBufferInStorePool flushCommitLogLeastPages
        flushCommitLogThoroughInterval flushCommitLogTimed flushConsumeQueueLeastPages
        flushConsumeQueueThoroughInterval flushLeastPagesWhenWarmMapedFile messageIndexSafe redeleteHangedFileInterval
        transientStorePoolSize useReentrantLockWhenPutMessage""",
    "this broker is no slave, and no send waits for one": """
        haMasterAddress haSlaveFallbehindMax offsetCheckInSlave slaveTimeout""",
    "there is no DLedger mode": """
        dLegerGroup dLegerPeers dLegerSelfId enableBatchPush isEnableBatchPush preferredLeaderId
        storePathDLedgerCommitLog""",
    "it belongs to RocketMQ's installation": """
        configStorePath isolateLogEnable productEnvName rocketmq.remoting.version rocketmq.serialize.type""",
    "the figures of a deleted topic or group always go": "autoDeleteUnusedStats",
    "the figures it switches are always kept": "diskFallRecorded enableDetailStat enableScheduleMessageStats",
    "delayed messages are delivered by one scheduler": """
        enableScheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit scheduleAsyncDeliverMaxResendNum2Blocked""",
    "light message queues are not built": "maxLmqConsumeQueueNum",
}
IGNORED = {key: reason for reason, keys in _IGNORED.items() for key in keys.split()}


class Fixed(NamedTuple):
    """The one value there is, and why there is no other."""

    value: str
    why: str


FIXED = {
    "brokerRole": Fixed("ASYNC_MASTER", "it serves slaves (slavesEnable), but no send waits for one, and it is none"),
    "clusterTest": Fixed("false", "there is no cluster-test mode: it would answer with routes of other clusters"),
    "duplicationEnable": Fixed("false", "RocketMQ's old way of replication does not exist here"),
    "enableDLegerCommitLog": Fixed("false", "DLedger has another store format, which is not built"),
    "enableLmq": Fixed("false", "light message queues are not built"),
    "enableMultiDispatch": Fixed("false", "light message queues are not built"),
    "filterServerNums": Fixed("0", "filter servers are programs that a broker starts; none is ever started here"),
    "messageStorePlugIn": Fixed("", "Java classes can not be loaded here"),
    "rocketmq.broker.multiPathSplitter": Fixed(",", "folders are always separated by a comma"),
    "tls.test.mode.enable": Fixed("false", "there is no built-in certificate: `gantry tls create FOLDER` makes one"),
}

# System properties of the Java process that have a setting's meaning, as keys of a properties file.
OTHER_NAMES = {
    "com.rocketmq.remoting.client.connect.timeout": "connectTimeoutMillis",
    "com.rocketmq.remoting.socket.backlog": "serverSocketBacklog",
    "com.rocketmq.remoting.socket.rcvbuf.size": "serverSocketRcvBufSize",
    "com.rocketmq.remoting.socket.sndbuf.size": "serverSocketSndBufSize",
    "com.rocketmq.remoting.write.buffer.high.water.mark": "writeBufferHighWaterMark",
    "com.rocketmq.remoting.write.buffer.low.water.mark": "writeBufferLowWaterMark",
    "rmqAddressServerDomain": "rocketmq.namesrv.domain",
    "rmqAddressServerSubGroup": "rocketmq.namesrv.domain.subgroup",
    "rocketmq.home.dir": "rocketmqHome",
    "rocketmq.namesrv.addr": "namesrvAddr",
    "tls.enable": "useTLS",
}


def is_fixed_at(key: str, value: str) -> bool:
    """Whether `value` is the one that a fixed setting has."""
    return value.strip().lower() == FIXED[key].value.lower()


def by_reason(keys: Iterable[str]) -> dict[str, list[str]]:
    """Ignored keys, sorted, under why they are ignored."""
    reasons: dict[str, list[str]] = {}
    for key in sorted(keys):
        reasons.setdefault(IGNORED.get(key, "unknown"), []).append(key)
    return reasons


def explain_ignored(keys: Iterable[str]) -> str:
    """One text for a log line, a status row or a remark."""
    return "; ".join(f"{', '.join(found)} ({reason})" for reason, found in by_reason(keys).items())
