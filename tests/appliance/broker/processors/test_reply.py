"""Replies of request-reply over raw frames: captured ones of the Java client, and those nobody can take."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.processors.reply import PUSHES_PER_CLIENT_MAX
from gantrymq.message.properties import decode_properties, encode_properties
from gantrymq.remoting.bodies import HeartbeatData, ProducerData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.appliance.peer import Peer, connected
from tests.harness import serving
from tests.waiting import WITHIN_S

FRAMES = Path(__file__).parents[3] / "golden" / "frames"
TOPIC = "DefaultCluster_REPLY_TOPIC"
OURS = {"bornHost", "storeHost", "storeTimestamp", "properties"}  # fields that depend on who, where and when


@pytest.fixture(autouse=True)
def patient_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of these tests that stands for a while has not gone."""
    monkeypatch.setattr("appliance.broker.processors.reply.PUSH_TIMEOUT_S", WITHIN_S)


def captured(name: str, code: int) -> list[bytes]:
    """Whole frames of requests with this code."""
    with gzip.open(FRAMES / f"{name}.jsonl.gz", "rt") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [bytes.fromhex(row["hex"]) for row in rows if row["code"] == code and not row["flag"] & 1]


def decoded(frame: bytes) -> RemotingCommand:
    return RemotingCommand.decode(frame[4:])


@contextlib.asynccontextmanager
async def requester(tool: Tool, client_id: str) -> AsyncIterator[Peer]:
    """A producer that has said hello."""
    async with connected(tool.broker.port) as peer:
        beat = HeartbeatData(client_id, [ProducerData("PG_asks")], [])
        assert (await peer.ask(RequestCode.HEART_BEAT, body=beat.to_json())).code == 0
        yield peer


def reply_fields(properties: dict[str, str], **changes: str) -> dict[str, str]:
    fields = {"a": "PG", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0"}
    fields |= {"g": str(int(time.time() * 1000)), "h": "0", "i": encode_properties(properties)}
    return fields | changes


@pytest.mark.parametrize("encoding", ["java_json", "java_rocketmq"])
@pytest.mark.parametrize("code", [RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2])
async def test_a_captured_reply_is_pushed_as_the_original_pushed_it(tmp_path: Path, encoding: str, code: int) -> None:
    pushes = {
        (decode_properties(push.ext_fields["properties"])["CORRELATION_ID"], push.body): push
        for push in map(decoded, captured(encoding, RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT))
    }
    checked = 0
    async with tool_at(tmp_path) as tool:
        for frame in captured(encoding, code):
            reply = decoded(frame)
            properties = decode_properties(reply.ext_fields.get("i", "") or reply.ext_fields.get("properties", ""))
            expected = pushes.get((properties.get("CORRELATION_ID", ""), reply.body))
            if expected is None:
                continue
            async with requester(tool, properties["REPLY_TO_CLIENT"]) as asking:
                tool.peer.write(frame)
                push = await asking.read()
                asking.write(push.reply(0).encode())
                answer = await tool.peer.read()
            assert (push.code, push.is_oneway, push.body) == (326, False, expected.body)
            assert push.ext_fields.keys() == expected.ext_fields.keys()
            assert {k: v for k, v in push.ext_fields.items() if k not in OURS} == {
                k: v for k, v in expected.ext_fields.items() if k not in OURS
            }
            ours, theirs = push.ext_fields["properties"], expected.ext_fields["properties"]
            assert ours.partition("\x02")[2] == theirs.partition("\x02")[2]  # behind PUSH_REPLY_TIME, to the letter
            assert abs(int(decode_properties(ours)["PUSH_REPLY_TIME"]) - time.time() * 1000) < 60_000
            assert push.ext_fields["storeHost"] == tool.broker.address
            assert (answer.code, answer.opaque, answer.remark) == (0, reply.opaque, None)
            assert answer.serialize_type == reply.serialize_type
            assert answer.ext_fields.keys() == {"queueId", "TRACE_ON", "MSG_REGION", "msgId", "queueOffset"}
            stored = tool.broker.store.look_message_by_offset(int(answer.ext_fields["msgId"][16:], 16))
            assert stored is not None
            assert (stored.topic, stored.body) == (TOPIC, reply.body)
            assert "PUSH_REPLY_TIME" not in stored.properties
            checked += 1
    assert checked


async def test_a_reply_that_can_not_be_pushed_is_stored_and_refused_in_the_originals_words(tool: Tool) -> None:
    answer = await tool.ask(325, reply_fields({"CORRELATION_ID": "c1"}), b"pong")
    assert (answer.code, answer.remark) == (1, "reply message properties[REPLY_TO_CLIENT] is null")
    assert (answer.ext_fields["queueOffset"], answer.ext_fields["MSG_REGION"]) == ("0", "DefaultRegion")
    gone = reply_fields({"CORRELATION_ID": "c1", "REPLY_TO_CLIENT": "10.0.0.1@gone"})
    answer = await tool.ask(325, gone, b"pong")
    assert (answer.code, answer.remark) == (1, "push reply message fail, channel of <10.0.0.1@gone> not found.")
    assert answer.ext_fields["queueOffset"] == "1"
    async with requester(tool, "10.0.0.1@r") as asking:
        request = RemotingCommand.request(325, reply_fields({"REPLY_TO_CLIENT": "10.0.0.1@r"}), b"pong")
        tool.peer.write(request.encode())
        asking.write((await asking.read()).reply(1, "nobody waits").encode())
        answer = await tool.peer.read()
        assert (answer.code, answer.remark) == (1, "push reply message to 10.0.0.1@rfail.")
        tool.peer.write(request.encode())
        await asking.read()
        await asking.close()
        assert (await tool.peer.read()).remark == "push reply message to 10.0.0.1@rfail."


async def test_the_time_of_the_push_is_the_brokers_own(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, requester(tool, "10.0.0.1@r") as asking:
        fields = reply_fields({"PUSH_REPLY_TIME": "1", "REPLY_TO_CLIENT": "10.0.0.1@r"})
        tool.peer.write(RemotingCommand.request(325, fields, b"pong").encode())
        push = await asking.read()
        asking.write(push.reply(0).encode())
        assert (await tool.peer.read()).code == 0
        assert int(decode_properties(push.ext_fields["properties"])["PUSH_REPLY_TIME"]) > 1_700_000_000_000


async def test_with_storing_off_a_pushed_reply_has_the_id_zero(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, broker={"store_reply_message_enable": False}) as cluster,
        connected(cluster.broker.port) as peer,
    ):
        tool = Tool(cluster, peer)
        async with requester(tool, "10.0.0.1@r") as asking:
            fields = reply_fields({"REPLY_TO_CLIENT": "10.0.0.1@r"}, e="-1")
            peer.write(RemotingCommand.request(325, fields, b"pong").encode())
            asking.write((await asking.read()).reply(0).encode())
            answer = await peer.read()
            assert (answer.code, answer.ext_fields["msgId"], answer.ext_fields["queueOffset"]) == (0, "0", "0")
        refused = await tool.ask(325, reply_fields({}), b"pong")
        assert refused.ext_fields.keys() == {"MSG_REGION", "TRACE_ON"}
        assert cluster.broker.store.max_offset(TOPIC, 0) == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"b": "a topic"}, ResponseCode.MESSAGE_ILLEGAL),
        ({"b": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION),
        ({"b": "Unknown", "c": "NoTemplate"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"e": "7"}, ResponseCode.SYSTEM_ERROR),
        ({"f": "many"}, ResponseCode.INVALID_PARAMETER),
    ],
)
async def test_what_no_message_may_be_no_reply_is(tmp_path: Path, changes: dict[str, str], code: int) -> None:
    async with tool_at(tmp_path) as tool, requester(tool, "10.0.0.1@r"):
        answer = await tool.ask(325, reply_fields({"REPLY_TO_CLIENT": "10.0.0.1@r"}) | changes, b"pong")
        assert answer.code == code
        assert answer.remark
        assert answer.remark != "system error"


async def test_replies_under_sync_flush_answer_when_they_are_on_disk(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, store={"flush_disk_type": "SYNC_FLUSH"}) as cluster,
        connected(cluster.broker.port) as peer,
    ):
        answer = await peer.ask(325, reply_fields({}), b"pong")
        assert answer.ext_fields["queueOffset"] == "0"
        assert cluster.broker.store.flushed_offset == cluster.broker.store.max_physical_offset


async def test_many_replies_to_one_client_wait_their_turn_and_all_arrive(tmp_path: Path) -> None:
    count = PUSHES_PER_CLIENT_MAX * 3
    async with tool_at(tmp_path) as tool, requester(tool, "10.0.0.1@r") as asking:
        fields = reply_fields({"REPLY_TO_CLIENT": "10.0.0.1@r"})
        for _ in range(count):
            tool.peer.write(RemotingCommand.request(325, fields, b"pong").encode())
        for _ in range(count):
            asking.write((await asking.read()).reply(0).encode())
        assert [(await tool.peer.read()).code for _ in range(count)] == [0] * count
        assert tool.broker.reply_pushes.bytes_under_way == 0


async def test_bodies_of_replies_under_way_are_bounded(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, requester(tool, "10.0.0.1@r") as asking:
        tool.broker.reply_pushes.bytes_max = 10
        fields = reply_fields({"REPLY_TO_CLIENT": "10.0.0.1@r"})
        first = RemotingCommand.request(325, fields, b"12345678")
        tool.peer.write(first.encode())
        push = await asking.read()
        second = await tool.ask(325, fields, b"12345678")
        assert second.code == ResponseCode.SYSTEM_BUSY
        asking.write(push.reply(0).encode())
        assert (await tool.peer.read()).opaque == first.opaque


async def test_a_client_that_never_answers_costs_a_push_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.processors.reply.PUSH_TIMEOUT_S", 0.1)
    monkeypatch.setattr("appliance.broker.processors.reply.PUSHES_PER_CLIENT_MAX", 1)
    async with tool_at(tmp_path) as tool, requester(tool, "10.0.0.1@r") as asking:
        fields = reply_fields({"REPLY_TO_CLIENT": "10.0.0.1@r"})
        for _ in range(2):  # the second waits for its turn in vain
            tool.peer.write(RemotingCommand.request(325, fields, b"pong").encode())
        assert {(await tool.peer.read()).remark for _ in range(2)} == {"push reply message to 10.0.0.1@rfail."}
        assert (await asking.read()).code == 326
