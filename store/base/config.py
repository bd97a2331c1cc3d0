"""Every setting of the message store, declared once: default, unit, and RocketMQ's own key.

`setting` is also what the appliance's configuration is made of (appliance/settings/roles.py), so that one loader can
read RocketMQ's properties files for every role.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantrymq.errors import ConfigError
from gantrymq.home import home_folder

PAGE_BYTES = 4096
SECTOR_BYTES = 512  # a power cut tears no smaller part
NAME_DIGITS = 20  # of the files of the log and of queues, whose names are their first byte
CONSUME_QUEUE_UNIT_BYTES = 20
INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
DAY_MS = 86_400_000
EXT_FILE_BYTES_MIN = 64  # one unit with RocketMQ's bit map, and the end mark


def setting(
    default: Any,
    rocketmq: str,
    doc: str,
    *,
    within: tuple[int, int] = (0, LONG_MAX),
    choices: tuple[int, ...] = (),
    live: bool = False,
) -> Any:
    """A dataclass field that knows all about a setting but its type.

    rocketmq: its key; doc: what it means, with unit; within: the least and the greatest value of a whole number;
    choices: the only values of one; live: a request may change it while the process runs, so it is read where it is
    used, or applied in `settings_changed` of the controller.
    """
    metadata = {"rocketmq": rocketmq, "doc": doc, "within": within, "choices": choices, "live": live}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class MessageStoreConfig:
    """Settings of one store folder (RocketMQ: org.apache.rocketmq.store.config.MessageStoreConfig)."""

    root: Path = setting(home_folder() / "store", "storePathRootDir", "folder of this store")
    commit_log: Path | None = setting(
        None, "storePathCommitLog", "folder of the commit log, or several with ','; empty: <root>/commitlog"
    )
    read_only_commit_log: str = setting(
        "",
        "readOnlyCommitLogStorePaths",
        "more folders, separated by ',': read and cleaned, but no new file is created in them",
    )
    commit_log_file_bytes: int = setting(1 << 30, "mappedFileSizeCommitLog", "bytes of each file")
    consume_queue_file_bytes: int = setting(
        300_000 * CONSUME_QUEUE_UNIT_BYTES, "mappedFileSizeConsumeQueue", "bytes of each file"
    )
    message_bytes_max: int = setting(
        4 << 20, "maxMessageSize", "largest body accepted, bytes", within=(1024, 256 << 20)
    )
    flush_disk_type: str = setting(
        "ASYNC_FLUSH", "flushDiskType", "ASYNC_FLUSH, or SYNC_FLUSH: answer after the disk has it"
    )
    flush_interval_ms: int = setting(
        500, "flushIntervalCommitLog", "longest wait between flushes, ms", within=(1, DAY_MS)
    )
    consume_queue_flush_interval_ms: int = setting(
        1000, "flushIntervalConsumeQueue", "between flushes of consume queues, ms", within=(1, DAY_MS)
    )
    sync_flush_timeout_ms: int = setting(5000, "syncFlushTimeout", "longest wait of a group commit, ms")
    index_enable: bool = setting(True, "messageIndexEnable", "keep the key index")
    index_slots: int = setting(5_000_000, "maxHashSlotNum", "hash slots of an index file")
    index_entries: int = setting(20_000_000, "maxIndexNum", "entries of an index file")
    consume_queue_ext_enable: bool = setting(
        False, "enableConsumeQueueExt", "keep store time and filter bits of each message beside its unit"
    )
    consume_queue_ext_file_bytes: int = setting(
        48 << 20, "mappedFileSizeConsumeQueueExt", "bytes of each file of the extension"
    )
    warm_files_enable: bool = setting(
        False, "warmMapedFileEnable", "own and warm the whole next commit log file before it is needed"
    )
    transient_pool_enable: bool = setting(
        False,
        "transientStorePoolEnable",
        "append to memory first; a killed process loses what was not committed yet. Not with SYNC_FLUSH",
    )
    commit_interval_ms: int = setting(
        200, "commitIntervalCommitLog", "between commits of the transient pool to the files, ms"
    )
    check_crc_on_recover: bool = setting(True, "checkCRCOnRecover", "verify bodies while recovering")
    file_reserved_hours: int = setting(
        72, "fileReservedTime", "age at which a file is deleted, hours", within=(1, 24 * 3650), live=True
    )
    delete_when: str = setting("04", "deleteWhen", "local hours of deletion, separated by ;", live=True)
    clean_interval_ms: int = setting(
        10_000, "cleanResourceInterval", "between cleaning rounds, ms", within=(100, DAY_MS), live=True
    )
    delete_log_files_pause_ms: int = setting(
        100, "deleteCommitLogFilesInterval", "after each deleted commit log file, ms", within=(0, 600_000), live=True
    )
    disk_max_used_percent: int = setting(
        75, "diskMaxUsedSpaceRatio", "cleaning starts above, percent", within=(10, 95), live=True
    )
    forcibly_ratio: float = setting(
        0.85,
        "rocketmq.broker.diskSpaceCleanForciblyRatio",
        (
            "used part of a disk above which files are deleted whatever their age, and above which no "
            "new file is created there"
        ),
    )
    warning_ratio: float = setting(
        0.90, "rocketmq.broker.diskSpaceWarningLevelRatio", "used part of the disk above which messages are rejected"
    )
    store_bytes_max: int = setting(
        0,
        "maxStoreBytes",
        (
            "bytes the commit log may hold before its oldest files are deleted, whatever their age; 0: "
            "no limit (not RocketMQ's)"
        ),
        live=True,
    )
    clean_forcibly_enable: bool = setting(
        True, "cleanFileForciblyEnable", "delete young files too when the store fills the disk", live=True
    )
    clean_forcibly_for_others: bool = setting(
        False,
        "cleanFileForciblyForOthers",
        "delete young files also when other programs filled the disk, as RocketMQ does (not RocketMQ's)",
        live=True,
    )
    stores_beside: str = setting(
        "",
        "storePathsBeside",
        (
            "stores of brokers that share the disks, separated by ',': their bytes count as this store's "
            "(not RocketMQ's)"
        ),
    )
    delay_levels: str = setting(
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        "messageDelayLevel",
        "delay of each level, level 1 first",
    )
    timer_enable: bool = setting(
        True, "timerWheelEnable", "accept messages for any time (RocketMQ 5's TIMER_ properties)"
    )
    timer_delay_max_s: int = setting(
        7 * 24 * 3600, "timerMaxDelaySec", "longest delay of such a message, seconds (RocketMQ 5: 3 days)"
    )
    query_messages_max: int = setting(64, "maxMsgsNumBatch", "most results of an index query")
    transfer_bytes_in_memory_max: int = setting(
        256 * 1024, "maxTransferBytesOnMessageInMemory", "bytes of one read of hot data"
    )
    transfer_count_in_memory_max: int = setting(
        32, "maxTransferCountOnMessageInMemory", "messages of one read of hot data"
    )
    transfer_bytes_in_disk_max: int = setting(
        64 * 1024, "maxTransferBytesOnMessageInDisk", "bytes of one read of cold data"
    )
    transfer_count_in_disk_max: int = setting(8, "maxTransferCountOnMessageInDisk", "messages of one read of cold data")
    in_memory_ratio_max: int = setting(
        40, "accessMessageInMemoryMaxRatio", "percent of RAM behind the end that counts as hot", within=(0, 100)
    )
    page_cache_busy_ms: int = setting(
        1000,
        "osPageCacheBusyTimeOutMills",
        "an append longer than this makes the store busy, ms",
        within=(1, DAY_MS),
        live=True,
    )

    def __post_init__(self) -> None:
        if self.commit_log_file_bytes < PAGE_BYTES or self.commit_log_file_bytes % PAGE_BYTES:
            raise ConfigError(
                f"mappedFileSizeCommitLog={self.commit_log_file_bytes}: use a multiple of {PAGE_BYTES}, at least one"
            )
        if self.consume_queue_file_bytes < CONSUME_QUEUE_UNIT_BYTES:
            raise ConfigError(f"mappedFileSizeConsumeQueue={self.consume_queue_file_bytes}: too small for one unit")
        if self.flush_disk_type not in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            raise ConfigError(f"flushDiskType={self.flush_disk_type}: use ASYNC_FLUSH or SYNC_FLUSH")
        if self.consume_queue_ext_file_bytes < EXT_FILE_BYTES_MIN:
            raise ConfigError(
                f"mappedFileSizeConsumeQueueExt={self.consume_queue_ext_file_bytes}: use {EXT_FILE_BYTES_MIN} or more"
            )
        if self.timer_delay_max_s < 0:
            raise ConfigError(f"timerMaxDelaySec={self.timer_delay_max_s}: use a number of seconds")
        if not 0.3 <= self.forcibly_ratio <= self.warning_ratio <= 0.99:
            raise ConfigError(
                f"rocketmq.broker.diskSpaceCleanForciblyRatio={self.forcibly_ratio}, "
                f"rocketmq.broker.diskSpaceWarningLevelRatio={self.warning_ratio}: use 0.3 to 0.99, rising"
            )
        if self.store_bytes_max < 0:
            raise ConfigError(f"maxStoreBytes={self.store_bytes_max}: use 0 for no limit, or a number of bytes")
        if not all(word.strip().isdecimal() and int(word) < 24 for word in self.delete_when.split(";") if word.strip()):
            raise ConfigError(f"deleteWhen={self.delete_when}: use hours from 00 to 23, separated by ;")

    @property
    def commit_log_folders(self) -> tuple[Path, ...]:
        """All folders that hold files of the commit log, those that get new ones first."""
        writable = split_paths(str(self.commit_log or "")) or [self.root / "commitlog"]
        return tuple(dict.fromkeys(writable + self.read_only_commit_log_folders))

    @property
    def read_only_commit_log_folders(self) -> list[Path]:
        return split_paths(self.read_only_commit_log)

    @property
    def stores_beside_paths(self) -> list[Path]:
        return split_paths(self.stores_beside)

    @property
    def delete_hours(self) -> frozenset[int]:
        return frozenset(int(word) for word in self.delete_when.split(";") if word.strip())

    @property
    def clean_ratio(self) -> float:
        return self.disk_max_used_percent / 100

    @property
    def is_sync_flush(self) -> bool:
        return self.flush_disk_type == "SYNC_FLUSH"


def split_paths(text: str) -> list[Path]:
    """RocketMQ's way to name several folders; blanks around a name don't count."""
    return [Path(word.strip()).expanduser() for word in text.split(",") if word.strip()]
