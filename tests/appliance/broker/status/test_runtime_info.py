"""The table of GET_BROKER_RUNTIME_INFO: RocketMQ's keys, texts that its tools can parse."""

from __future__ import annotations

import pytest

from appliance.broker.status.runtime_info import readable_bytes
from tests.appliance.broker.processors.tool import Tool
from tests.appliance.broker.runtime_table import runtime_table

# A real 4.9.4 ASYNC_MASTER's keys, without the ones that name a path or a delay level.
REAL_KEYS = """
EndTransactionQueueSize EndTransactionThreadPoolQueueCapacity bootTimestamp brokerVersion brokerVersionDesc
commitLogDirCapacity commitLogDiskRatio commitLogMaxOffset commitLogMinOffset consumeQueueDiskRatio dispatchBehindBytes
dispatchMaxBuffer earliestMessageTimeStamp getFoundTps getMessageEntireTimeMax getMissTps getTotalTps getTransferedTps
msgGetTotalTodayMorning msgGetTotalTodayNow msgGetTotalYesterdayMorning msgPutTotalTodayMorning msgPutTotalTodayNow
msgPutTotalYesterdayMorning pageCacheLockTimeMills pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills
pullThreadPoolQueueSize putLatency99 putLatency999 putMessageAverageSize putMessageDistributeTime
putMessageEntireTimeMax putMessageFailedTimes putMessageSizeTotal putMessageTimesTotal putTps
queryThreadPoolQueueCapacity
queryThreadPoolQueueHeadWaitTimeMills queryThreadPoolQueueSize remainHowManyDataToFlush remainTransientStoreBufferNumbs
runtime sendThreadPoolQueueCapacity sendThreadPoolQueueHeadWaitTimeMills sendThreadPoolQueueSize
startAcceptSendRequestTimeStamp
"""


async def test_every_key_of_the_real_one_is_there_with_a_text(tool: Tool) -> None:
    table = runtime_table(tool.broker)
    assert set(REAL_KEYS.split()) <= table.keys()
    assert f"commitLogDiskRatio_{tool.broker.store_config.commit_log_folders[0]}" in table
    assert [key for key, value in table.items() if not (isinstance(value, str) and value)] == []


async def test_disk_ratios_are_known_before_the_first_message(tool: Tool) -> None:
    table = runtime_table(tool.broker)
    assert 0 < float(table["commitLogDiskRatio"]) <= 1
    assert 0 < float(table["consumeQueueDiskRatio"]) <= 1


async def test_the_marks_of_the_disk_are_those_in_force(tool: Tool) -> None:
    keys = ("diskCleanMarkRatio", "diskForceMarkRatio", "diskRefuseMarkRatio")
    assert [runtime_table(tool.broker)[key] for key in keys] == ["0.95", "0.99", "0.99"]
    await tool.ask(25, body=b"diskMaxUsedSpaceRatio=60")
    assert [runtime_table(tool.broker)[key] for key in keys] == ["0.6", "0.99", "0.99"]


async def test_rates_are_three_numbers_with_single_spaces(tool: Tool) -> None:
    table = runtime_table(tool.broker)
    for key in ("putTps", "getFoundTps", "getMissTps", "getTotalTps", "getTransferedTps"):
        assert len([float(part) for part in table[key].split(" ")]) == 3


async def test_todays_totals_are_of_all_that_is_stored_as_in_the_original(tool: Tool) -> None:
    assert runtime_table(tool.broker)["putMessageTimesTotal"] == "0"
    await tool.create_topic("T")
    await tool.send("T", b"prepared", TRAN_MSG="true", PGROUP="PG")  # a half message: nobody's topic counts it
    await tool.send("T", b"x")
    await tool.send("T", b"later", DELAY="18")
    table = runtime_table(tool.broker)
    assert (table["msgPutTotalTodayNow"], table["putMessageTimesTotal"]) == ("3", "3")


async def test_uptime_is_told_in_rocketmqs_words(tool: Tool) -> None:
    boot_s = tool.broker.store.stats.boot_timestamp_ms / 1000
    table = runtime_table(tool.broker, now_s=boot_s + 2 * 86400 + 3 * 3600 + 4 * 60 + 5.5)
    assert table["runtime"] == "[ 2 days, 3 hours, 4 minutes, 5 seconds ]"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (699, "699 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        (115 << 30, "115.0 GiB"),
        (3 << 60, "3072.0 PiB"),
    ],
)
def test_bytes_are_readable(count: int, text: str) -> None:
    assert readable_bytes(count) == text
