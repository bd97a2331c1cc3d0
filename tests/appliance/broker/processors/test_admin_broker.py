"""The broker's settings, figures and counters as tools see them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from appliance.remoting import settings_request
from gantrymq.log_limit import LogLimit
from gantrymq.remoting.admin_bodies import BrokerStatsData, DelayOffsetTable, KVTable
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.processors.tool import Tool, tool_at


async def test_settings_are_listed_with_their_version(tool: Tool) -> None:
    answer = await tool.ask(RequestCode.GET_BROKER_CONFIG)
    assert "brokerName=broker-a" in answer.body.decode().splitlines()
    assert "flushDiskType=ASYNC_FLUSH" in answer.body.decode().splitlines()
    assert '"counter":0' in answer.ext_fields["version"]


async def test_a_changed_setting_is_in_force_at_once(tool: Tool) -> None:
    await tool.create_topic("T")
    changes = f"traceOn=false\nwaitTimeMillsInSendQueue=999\nsendThreadPoolQueueCapacity=77\n# {'x' * 50}\n"
    assert (await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=changes.encode())).code == ResponseCode.SUCCESS
    lane = tool.broker.lanes.by_name["send"]
    assert (lane.wait_seconds_max, lane.capacity) == (0.999, 77)
    assert (await tool.send("T", b"x")).ext_fields["TRACE_ON"] == "false"
    answer = await tool.ask(RequestCode.GET_BROKER_CONFIG)
    assert "traceOn=false" in answer.body.decode().splitlines()
    assert '"counter":1' in answer.ext_fields["version"]


async def test_a_broker_closed_for_writing_tells_the_name_server(tool: Tool) -> None:
    await tool.create_topic("T")
    for permission, perm in (("4", 4), ("6", 6)):
        await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=f"brokerPermission={permission}".encode())
        await tool.broker.outer_api.register_all()
        route = tool.namesrv.routes.pickup_topic_route("T")
        assert route is not None
        assert route.queue_datas[0].perm == perm


async def test_sends_wait_for_the_accept_time(tool: Tool) -> None:
    await tool.create_topic("T")
    later = int(time.time() * 1000) + 60_000
    await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=f"startAcceptSendRequestTimeStamp={later}".encode())
    with pytest.raises(AssertionError, match="until"):
        await tool.send("T", b"x")
    await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"startAcceptSendRequestTimeStamp=0")
    await tool.send("T", b"x")


@pytest.mark.parametrize(
    "line",
    [
        "rocketmqHome=-c /bin/sh",  # CVE-2023-33246
        "filterServerNums=1",
        "storePathRootDir=/tmp/x",
        "configStorePath=/tmp/x",
        "namesrvAddr=10.0.0.1:9876",
        "brokerName=other",
        "waitTimeMillsInSendQueue=soon",
        "sendThreadPoolQueueCapacity=-1",
        "brokerPermission=7",
        "brokerRole=SLAVE",
        "tls.server.mode=disabled",
    ],
)
async def test_what_must_not_change_is_refused_by_name_and_told_to_the_operator(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(settings_request, "_log_limit", LogLimit())
    async with tool_at(tmp_path) as tool:
        before = tool.broker.live_config.text()
        answer = await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=f"traceOn=false\n{line}".encode())
        assert answer.code in (ResponseCode.NO_PERMISSION, ResponseCode.INVALID_PARAMETER)
        assert line.split("=")[0] in (answer.remark or "")
        assert tool.broker.live_config.text() == before
    (told,) = [record for record in caplog.records if getattr(record, "event", "") == "settings_refused"]
    assert vars(told)["peer"].startswith("127.0.0.1:")
    assert line.split("=")[0] in vars(told)["why"]


async def test_topics_stop_being_created_by_sends_when_told_so(tool: Tool) -> None:
    await tool.send("First", b"x")
    await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"autoCreateTopicEnable=false")
    with pytest.raises(AssertionError, match="not exist"):
        await tool.send("Second", b"x")
    await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"autoCreateTopicEnable=true\ndefaultTopicQueueNums=3")
    await tool.send("Second", b"x")
    template = tool.broker.topics.get("TBW102")
    assert template is not None
    assert (template.write_queue_nums, template.perm) == (3, 7)


async def test_the_trace_topic_is_there_once_it_is_wanted_and_stays_with_what_it_has(tmp_path: Path) -> None:
    async with tool_at(tmp_path, trace_topic_name="Traces") as tool:
        topics = tool.broker.topics
        assert topics.get("Traces") is None
        version = topics.data_version.counter
        answer = await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"traceTopicEnable=true")
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        made = topics.get("Traces")
        assert made is not None and (made.write_queue_nums, made.read_queue_nums, made.perm) == (1, 1, 6)
        assert topics.data_version.counter > version and "Traces" in topics.system_topics
        await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"traceTopicEnable=false")
        assert topics.get("Traces") is made
        assert "Traces" not in topics.system_topics, "as after a start without it"


async def test_a_setting_that_means_nothing_here_is_accepted_and_the_answer_says_so(tool: Tool) -> None:
    answer = await tool.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"sendMessageThreadPoolNums=4")
    assert answer.code == ResponseCode.SUCCESS
    assert "sendMessageThreadPoolNums (one event loop" in (answer.remark or "")


async def test_a_counter_exists_once_something_was_counted(tool: Tool) -> None:
    await tool.create_topic("T")
    fields = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "T"}
    unknown = await tool.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields)
    assert (unknown.code, unknown.remark) == (1, "The stats <TOPIC_PUT_NUMS> <T> not exist")
    for _ in range(4):
        await tool.send("T", b"x")
    tool.broker.stats.sample(time.time())
    answer = await tool.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields)
    assert BrokerStatsData.from_json(answer.body).stats_minute.sum == 4
    assert all(name in answer.body for name in (b"statsMinute", b"statsHour", b"statsDay"))


async def test_delay_offsets_are_told_once_there_are_some(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool.broker.schedule, "deliver_slice", lambda: 60.0)  # it would correct the offset
    none = await tool.ask(RequestCode.GET_ALL_DELAY_OFFSET)
    assert (none.code, none.remark) == (1, "No delay offset in this broker")
    tool.broker.schedule.offsets[3] = 7
    answer = await tool.ask(RequestCode.GET_ALL_DELAY_OFFSET)
    assert DelayOffsetTable.from_json(answer.body).offset_table == {3: 7}
    table = KVTable.from_json((await tool.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).body).table
    assert table["scheduleMessageOffset_3"] == "7,0"


@pytest.mark.parametrize("code", [RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, RequestCode.DELETE_EXPIRED_COMMITLOG])
async def test_housekeeping_on_demand_spares_what_is_alive(tool: Tool, code: int) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"x")
    assert (await tool.ask(code)).code == ResponseCode.SUCCESS
    assert tool.broker.store.max_offset("T", 0) == 1


@pytest.mark.parametrize(("code", "expected"), [(50, 209), (51, 210), (52, 1), (53, 211), (54, 1)])
async def test_requests_about_access_control_are_answered(tool: Tool, code: int, expected: int) -> None:
    answer = await tool.ask(code, {"accessKey": "someAccessKey"})
    assert answer.code == expected
    assert "aclEnable" in (answer.remark or "")
