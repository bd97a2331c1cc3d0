"""Looking messages up by key and by id."""

from __future__ import annotations

import pytest

from appliance.process.cooperative import SliceScheduler
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.record import decode_record, decode_records
from gantrymq.remoting.codes import RequestCode, ResponseCode
from store.index import file as index_file
from tests.appliance.broker.processors.tool import Tool

FOREVER = {"beginTimestamp": "0", "endTimestamp": str((1 << 63) - 1)}


async def test_a_message_is_found_by_its_key_and_by_its_unique_key(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"one", KEYS="k1 k2", UNIQ_KEY="ABC")
    await tool.send("T", b"two", KEYS="k2", UNIQ_KEY="DEF")
    for key, is_unique, bodies in (
        ("k1", "false", {b"one"}),
        ("k2", "false", {b"one", b"two"}),
        ("DEF", "true", {b"two"}),
    ):
        fields = {"topic": "T", "key": key, "maxNum": "10", "_UNIQUE_KEY_QUERY": is_unique} | FOREVER
        answer = await tool.ask(RequestCode.QUERY_MESSAGE, fields)
        assert {message.body for message in decode_records(answer.body)} == bodies
        assert int(answer.ext_fields["indexLastUpdateTimestamp"]) > 0
        assert "indexLastUpdatePhyoffset" in answer.ext_fields


async def test_a_message_is_found_as_soon_as_its_send_is_answered(tool: Tool) -> None:
    """Whenever what waits for the index is written the next time: not between each of these pairs."""
    await tool.create_topic("T")
    for number in range(20):
        await tool.send("T", b"one", KEYS=f"k{number}")
        answer = await tool.ask(RequestCode.QUERY_MESSAGE, {"topic": "T", "key": f"k{number}", "maxNum": "1"} | FOREVER)
        assert answer.code == ResponseCode.SUCCESS


async def test_a_unique_key_finds_all_of_its_messages_whatever_is_asked_for(tool: Tool) -> None:
    await tool.create_topic("T")
    for body in (b"sent", b"sent again"):  # after a time-out, say
        await tool.send("T", body, UNIQ_KEY="ABC")
    fields = {"topic": "T", "key": "ABC", "maxNum": "1"} | FOREVER
    for is_unique, count in (("true", 2), ("false", 1)):
        answer = await tool.ask(RequestCode.QUERY_MESSAGE, fields | {"_UNIQUE_KEY_QUERY": is_unique})
        assert len(decode_records(answer.body)) == count


async def test_a_topic_of_the_same_hash_shows_none_of_its_messages(tool: Tool) -> None:
    for topic in ("Aa", "BB"):  # the best known pair of Java
        await tool.create_topic(topic)
        await tool.send(topic, topic.encode(), KEYS="k")
    for topic in ("Aa", "BB"):
        fields = {"topic": topic, "key": "k", "maxNum": "10"} | FOREVER
        answer = await tool.ask(RequestCode.QUERY_MESSAGE, fields)
        assert [message.topic for message in decode_records(answer.body)] == [topic]


@pytest.mark.parametrize(("topic", "key"), [("T", "no"), ("T", "k" * 40_000), ("U", "k")])
async def test_without_a_hit_the_index_says_nothing_of_itself(tool: Tool, topic: str, key: str) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"x", KEYS="k")
    answer = await tool.ask(RequestCode.QUERY_MESSAGE, {"topic": topic, "key": key, "maxNum": "2"} | FOREVER)
    assert answer.code == ResponseCode.QUERY_NOT_FOUND
    assert answer.remark == "can not find message, maybe time range not correct"
    assert answer.ext_fields == {"indexLastUpdatePhyoffset": "0", "indexLastUpdateTimestamp": "0"}


async def test_a_message_is_read_at_the_offset_of_its_id(tool: Tool) -> None:
    await tool.create_topic("T")
    await tool.send("T", b"one")
    sent = await tool.send("T", b"two")
    *_, offset = decode_offset_message_id(sent.ext_fields["msgId"])
    answer = await tool.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(offset)})
    assert decode_record(answer.body).body == b"two"
    for wrong in (offset + 1, 1 << 40, -1):
        answer = await tool.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(wrong)})
        assert (answer.code, answer.remark) == (1, f"can not find message by the offset, {wrong}")


async def test_a_key_of_many_messages_lets_others_have_turns(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = 0
    next_turn = SliceScheduler.next_turn

    async def counted(scheduler: SliceScheduler) -> None:
        nonlocal turns
        turns += 1
        await next_turn(scheduler)

    monkeypatch.setattr(SliceScheduler, "next_turn", counted)
    monkeypatch.setattr(index_file, "ENTRIES_A_STEP", 2)
    await tool.create_topic("T")
    for number in range(20):
        await tool.send("T", b"%d" % number, KEYS="k")
    turns = 0
    fields = {"topic": "T", "key": "k", "maxNum": "30"} | FOREVER
    answer = await tool.ask(RequestCode.QUERY_MESSAGE, fields)
    assert len(decode_records(answer.body)) == 20
    assert turns == 9, "twenty entries, two a turn"
