"""What the broker's settings amount to where they are not written down: for request 26.

RocketMQ's tools show all its settings, and programs look for some. So each that does nothing here is told too, with the
value that says what this broker really does; one that RocketMQ itself reads nowhere, with RocketMQ's default. And what
is empty in the file because it follows from others is told as what it came out as.
"""

from __future__ import annotations

from appliance.broker.access.cost_limits import UNIQUE_KEY_MESSAGES_MAX
from appliance.broker.access.lane_limits import HEARTBEAT_WAIT_MS, SHORT_POLLING_MS, TRANSACTION_WAIT_MS, lane_limits
from appliance.broker.filters.bloom import ERROR_PERCENT, GROUPS_EXPECTED, BloomFilter
from appliance.broker.filters.consumer_filter import FORGOTTEN_AFTER_MS
from appliance.remoting.client_peer import AWAITED_MAX
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.connection import IN_FLIGHT_MAX
from store.base.config import PAGE_BYTES, MessageStoreConfig
from store.log.commit_log import WARM_NEXT_BYTES
from store.upkeep.flush import LEAST_DIRTY_BYTES, THOROUGH_INTERVAL_S, WRITE_MANY_INTERVAL_S
from store.upkeep.retention import QUEUE_FILES_PAUSE_S

ONE_LOOP = "1"  # one thread serves them all
NO_LIMIT = str((1 << 31) - 1)  # of a number: what is bounded is bytes

_ALWAYS = {
    # thread pools
    **dict.fromkeys(
        [
            "adminBrokerThreadPoolNums",
            "clientManageThreadPoolNums",
            "clientWorkerThreads",
            "consumerManageThreadPoolNums",
            "endTransactionThreadPoolNums",
            "heartbeatThreadPoolNums",
            "processReplyMessageThreadPoolNums",
            "pullMessageThreadPoolNums",
            "putMessageFutureThreadPoolNums",
            "queryMessageThreadPoolNums",
            "sendMessageThreadPoolNums",
            "serverCallbackExecutorThreads",
            "serverSelectorThreads",
            "serverWorkerThreads",
        ],
        ONE_LOOP,
    ),
    "putThreadPoolQueueCapacity": "0",
    # Netty
    "clientPooledByteBufAllocatorEnable": "false",
    "serverPooledByteBufAllocatorEnable": "false",
    "transferMsgByHeap": "false",  # answers are views of the files
    "useEpollNativeSelector": "false",
    # calls to name servers and to clients
    "channelNotActiveInterval": "0",
    "clientAsyncSemaphoreValue": str(IN_FLIGHT_MAX),
    "clientChannelMaxIdleTimeSeconds": "0",  # connections stay open
    "clientCloseSocketIfTimeout": "true",  # of a peer that is silent altogether
    "clientOnewaySemaphoreValue": NO_LIMIT,
    "clientSocketRcvBufSize": "0",  # the kernel's own
    "clientSocketSndBufSize": "0",
    "serverAsyncSemaphoreValue": str(AWAITED_MAX),
    "serverOnewaySemaphoreValue": NO_LIMIT,
    # declared by RocketMQ and read nowhere: its defaults
    "commercialBaseCount": "1",
    "commercialBigCount": "1",
    "commercialEnable": "true",
    "commercialTimerCount": "1",
    "commercialTransCount": "1",
    "flushConsumerOffsetHistoryInterval": "60000",
    "highSpeedMode": "false",
    "maxDelayTime": "40",
    "putMsgIndexHightWater": "600000",
    # files
    "commitCommitLogLeastPages": "0",
    "debugLockEnable": "false",
    "destroyMapedFileIntervalForcibly": "0",  # a file that goes is gone at once
    "fastFailIfNoBufferInStorePool": "false",
    "flushCommitLogLeastPages": str(LEAST_DIRTY_BYTES // PAGE_BYTES),
    "flushCommitLogThoroughInterval": str(int(THOROUGH_INTERVAL_S * 1000)),
    "flushCommitLogTimed": "true",
    "flushConsumeQueueLeastPages": "0",
    "flushConsumeQueueThoroughInterval": str(int(WRITE_MANY_INTERVAL_S * 1000)),
    "flushLeastPagesWhenWarmMapedFile": str(WARM_NEXT_BYTES // PAGE_BYTES),
    "messageIndexSafe": "true",  # recovery gives the index what it lacks
    "redeleteHangedFileInterval": "0",
    "transientStorePoolSize": "0",  # its buffers are made when files are
    "useReentrantLockWhenPutMessage": "false",
    # no DLedger, no light message queues
    **dict.fromkeys(("dLegerGroup", "dLegerPeers", "dLegerSelfId", "preferredLeaderId"), ""),
    "isEnableBatchPush": "false",
    "maxLmqConsumeQueueNum": "0",
    "storePathDLedgerCommitLog": "",
    # numbers and delays
    "autoDeleteUnusedStats": "true",
    "diskFallRecorded": "true",
    "enableDetailStat": "true",
    "enableScheduleAsyncDeliver": "false",
    "enableScheduleMessageStats": "true",
    "isolateLogEnable": "false",
    "scheduleAsyncDeliverMaxPendingLimit": "0",
    "scheduleAsyncDeliverMaxResendNum2Blocked": "0",
    # constants here
    "brokerTopicEnable": "true",
    "clusterTopicEnable": "true",
    "defaultQueryMaxNum": str(UNIQUE_KEY_MESSAGES_MAX),
    "deleteConsumeQueueFilesInterval": str(int(QUEUE_FILES_PAUSE_S * 1000)),
    "expectConsumerNumUseFilter": str(GROUPS_EXPECTED),
    "filterDataCleanTimeSpan": str(FORGOTTEN_AFTER_MS),
    "maxErrorRateOfBloomFilter": str(ERROR_PERCENT),
    "notifyConsumerIdsChangedEnable": "true",
    "shortPollingTimeMills": str(SHORT_POLLING_MS),
    "waitTimeMillsInHeartbeatQueue": str(HEARTBEAT_WAIT_MS),
    "waitTimeMillsInTransactionQueue": str(TRANSACTION_WAIT_MS),
    "writeBufferLowWaterMark": "0",  # a quarter of the high one
}
_CAPACITIES = {  # by lane; those that are settings are told anyway
    "client": "clientManagerThreadPoolQueueCapacity",
    "consumer": "consumerManagerThreadPoolQueueCapacity",
    "heartbeat": "heartbeatThreadPoolQueueCapacity",
    "query": "queryThreadPoolQueueCapacity",
    "reply": "replyThreadPoolQueueCapacity",
    "transaction": "endTransactionPoolQueueCapacity",
}


def told_settings(config: BrokerConfig, store_config: MessageStoreConfig) -> dict[str, str]:
    """By RocketMQ's key, beside and instead of what the configuration objects say. The texts of a properties file."""
    capacities = {
        _CAPACITIES[lane]: str(limits.capacity) for lane, limits in lane_limits(config).items() if lane in _CAPACITIES
    }
    host = config.advertised_address_host
    bloom = BloomFilter()
    return (
        _ALWAYS
        | capacities
        | {
            "bitMapLengthConsumeQueueExt": str(bloom.bit_count),
            "brokerIP1": host,
            "brokerIP2": config.ha_advertised_host or host,
            "commitCommitLogThoroughInterval": str(store_config.commit_interval_ms),
            "rmqAddressServerDomain": config.address_server_domain,
            "rmqAddressServerSubGroup": config.address_server_subgroup,
            "storePathCommitLog": str(store_config.commit_log or store_config.root / "commitlog"),
        }
    )
