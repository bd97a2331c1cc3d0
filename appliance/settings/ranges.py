"""The ranges of numeric settings. Whole numbers without an entry here may be any number from 0 up."""

from __future__ import annotations

from fnmatch import fnmatchcase

from gantrymq.errors import ConfigError

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DAY_MS = 86_400_000

_RANGES: dict[str, tuple[int, int]] = {
    "accessMessageInMemoryMaxRatio": (0, 100),
    "brokerChannelExpiredTime": (1000, DAY_MS),
    "cleanResourceInterval": (100, DAY_MS),
    "com.rocketmq.remoting.frameMaxLength": (4096, 256 << 20),
    "connectTimeoutMillis": (10, 600_000),
    "createdAMinuteMax": (1, INT_MAX),
    "defaultTopicQueueNums": (1, 65_536),
    "expectConsumerNumUseFilter": (1, 10_000),
    "deleteCommitLogFilesInterval": (0, 600_000),
    "deleteConsumeQueueFilesInterval": (0, 600_000),
    "diskMaxUsedSpaceRatio": (10, 95),
    "fileReservedTime": (1, 24 * 3650),
    "flushConsumerOffsetInterval": (10, DAY_MS),
    "flushDelayOffsetInterval": (10, DAY_MS),
    "flushIntervalCommitLog": (1, DAY_MS),
    "flushIntervalConsumeQueue": (1, DAY_MS),
    "heartbeatSubscriptionsMax": (1, 1_000_000),
    "lockQueuesMax": (1, 1_000_000),
    "minInSyncReplicas": (1, 64),
    "messageKeysMax": (1, 32_767),
    "traceMessageKeysMax": (1, 32_767),
    "maxErrorRateOfBloomFilter": (1, 99),
    "maxMessageSize": (1024, 256 << 20),
    "osPageCacheBusyTimeOutMills": (1, DAY_MS),
    "protectBrokerInterval": (100, DAY_MS),
    "queueLockGraceTime": (-1, DAY_MS),
    "registerBrokerTimeoutMills": (10, 600_000),
    "haSendHeartbeatInterval": (100, 600_000),
    "haHousekeepingInterval": (1000, 3_600_000),
    "haSlaveFallbehindMax": (1, LONG_MAX),
    "slaveTimeout": (10, 600_000),
    "haTransferBatchSize": (1024, 1024 * 1024),
    "registerNameServerPeriod": (1000, 600_000),
    "rocketmq.broker.rebalance.lockMaxLiveTime": (1000, DAY_MS),
    "scanNotActiveBrokerInterval": (100, DAY_MS),
    "serverChannelMaxIdleTimeSeconds": (1, 86_400),
    "serverSocketBacklog": (1, 65_535),
    "serverSocketRcvBufSize": (0, 1 << 30),
    "serverSocketSndBufSize": (0, 1 << 30),
    "shortPollingTimeMills": (1, DAY_MS),
    "transactionCheckInterval": (10, DAY_MS),
    "transactionCheckMax": (1, INT_MAX),
    "writeBufferHighWaterMark": (0, 64 << 20),
    "writeBufferLowWaterMark": (0, 64 << 20),
}
_RANGES_BY_PATTERN = {  # 0 would refuse every request
    "*QueueCapacity": (1, 10_000_000),  # requests that may wait
    "waitTimeMillsIn*": (1, DAY_MS),
}
_CHOICES = {"brokerPermission": (2, 4, 6)}


def check_number(key: str, value: int, where: str = "") -> None:
    """Raise ConfigError with the allowed values when the setting can't have this one."""
    choices = choices_of(key)
    if choices and value not in choices:
        raise ConfigError(f"{where}{key}={value}: use one of {', '.join(map(str, choices))}")
    lowest, highest = range_of(key)
    if not lowest <= value <= highest:
        most = "up" if highest == LONG_MAX else f"to {highest}"
        raise ConfigError(f"{where}{key}={value}: use a number from {lowest} {most}")


def choices_of(key: str) -> tuple[int, ...]:
    """The only values of the setting; none: a range of them."""
    return _CHOICES.get(key, ())


def range_of(key: str) -> tuple[int, int]:
    """The least and the greatest value of a numeric setting."""
    if key in _RANGES:
        return _RANGES[key]
    fitting = (found for pattern, found in _RANGES_BY_PATTERN.items() if fnmatchcase(key, pattern))
    return next(fitting, (0, LONG_MAX))
