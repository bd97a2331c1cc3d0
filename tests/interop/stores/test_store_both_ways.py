"""A store folder changes hands, running brokers at both ends: Apache's to ours and back, ours to Apache's and back.

Each broker finds everything that was ever stored, to the byte, goes on where the group's consumer and the delayed
messages were, and adds its own: plain, long, batched, delayed, retried, and transactions. Then it is
stopped, or killed while its last messages are in no file but the log.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq.message import ids, record
from gantrymq.message import properties as names
from gantrymq.message.compression import decompress_body
from gantrymq.message.model import MessageExt
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.interop.at_once import at_once as at_once
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.stores.one_store import LOG_FILE_BYTES, OneStore
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow

TOPIC = "BothWays"
QUEUES = 4
GROUP = "both-ways-group"
RETRY = f"%RETRY%{GROUP}"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"

PLAIN, BATCHES, DELAYED = 500, 10, 6
TRANSACTIONS = 9
COMMITTED, ROLLED_BACK = 0, 1  # a transaction's outcome is its number modulo 3; the others are left open
LAST_PLAIN, LAST_DELAYED = 20, 4
SENT_BACK = 3
TAGS = ("TagA", "TagB", "TagC")
TRANSACTION_COMMIT = 8

# A look for open transactions, once a minute, would move the broker's own offsets while the test compares them.
SETTINGS = {"transactionCheckInterval": "3600000"}


class Story:
    """What was sent so far, and what the group has to get of it."""

    def __init__(self) -> None:
        self.next_number = 0
        self.stored: set[int] = set()  # numbers that have to be in the topic, once
        self.unique_ids: dict[int, str] = {}
        self.owed: Counter[int] = Counter()  # deliveries that the group has not had yet
        self.short: set[int] = set()  # numbers of last words: their bodies have no tail
        self.open_halves: dict[int, tuple[str, int]] = {}  # unique id, offset in the half queue
        self.rolled_back: set[int] = set()
        self.index_floor = 0  # Apache drops its index files after a crash: keys of older messages are gone

    def sent(self, number: int, unique_id: str) -> None:
        self.stored.add(number)
        self.owed[number] += 1
        self.unique_ids[number] = unique_id


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("makes", [("apache", "gantry", "apache"), ("gantry", "apache", "gantry")], ids="-".join)
def test_a_folder_is_taken_over_and_handed_back(
    request: pytest.FixtureRequest, at_once: Callable[[pytest.Item], None], makes: tuple[str, ...], end: str
) -> None:
    at_once(request.node)


def run_case(tmp_path: Path, java: JavaClient, makes: tuple[str, ...], end: str) -> None:
    story = Story()
    kill = end == "kill"
    offsets: dict[RequestCode, dict[str, object]] = {}
    with OneStore(tmp_path, **SETTINGS) as one:
        for make in makes:
            begin = time.monotonic()
            before = one.at_rest()
            start_s = one.open(make)
            if not before:
                rpc.create_topic(one.address, TOPIC, QUEUES)
            if make == "apache" and kill:
                story.index_floor = _last_file_start(before)
            _check_queues(one, before)
            _check_tags(one, before)
            keys = _check_keys(one, before, story)
            if offsets:
                assert one.offsets(RequestCode.GET_ALL_CONSUMER_OFFSET) == offsets[RequestCode.GET_ALL_CONSUMER_OFFSET]
            owed = story.owed.total()
            _work(one, java, before.get((HALF_TOPIC, 0), []), story, may_repeat=kill and bool(before))
            offsets = _settled_offsets(one)
            if kill:
                _wait_saved(one, offsets)
            _last_words(one, story)
            one.leave(kill=kill)
            print(
                f"{make}: opened {sum(map(len, before.values()))} records in {start_s:.1f} s, found {keys} by key; "
                f"{owed} were owed to the group; {end} after {time.monotonic() - begin:.1f} s"
            )
        _check_story(one.at_rest(), story)


SAVED = {
    RequestCode.GET_ALL_CONSUMER_OFFSET: "consumerOffset.json",
    RequestCode.GET_ALL_DELAY_OFFSET: "delayOffset.json",
}


def _settled_offsets(one: OneStore) -> dict[RequestCode, dict[str, object]]:
    """The broker's offsets, once the consumer's parting one-way commits have arrived."""
    last: dict[RequestCode, dict[str, object]] = {}
    while (now := {code: one.offsets(code) for code in SAVED}) != last:
        last = now
        time.sleep(0.5)
    return now


# -- what a broker does while it has the folder -----------------------------------------------------------------------


def _work(one: OneStore, java: JavaClient, halves: list[bytes], story: Story, *, may_repeat: bool) -> None:
    """The group gets what it is owed and what is sent meanwhile, each message once.

    may_repeat: the broker before was killed, perhaps just before it knew of the consumer's last offset; what the
    group had then may come again, as both makes promise no more than "at least once".
    """
    with java.consume(one.namesrv_address, TOPIC, GROUP) as consumer:
        _commit_open_halves(one, halves, story)
        _send_variety(one, java, story)
        _send_back(one, story)
        wanted = story.owed
        consumer.wait_for(lambda: not wanted - _numbers(consumer), f"{wanted.total()} messages")
    got = _numbers(consumer)
    more = got - wanted
    assert not wanted - got, f"lost {wanted - got}"
    assert not more or (may_repeat and more.keys() <= story.stored), f"repeated or strange {more}"
    story.owed = Counter()


def _numbers(consumer: ClientProgram) -> Counter[int]:
    return Counter(int(line[0]) for line in consumer.lines("GOT"))


def _send_variety(one: OneStore, java: JavaClient, story: Story) -> None:
    counts = (PLAIN, BATCHES, DELAYED, TRANSACTIONS)
    with java.run("Variety", one.namesrv_address, TOPIC, story.next_number, *counts) as producer:
        producer.wait_done()
    for number, status, unique_id in producer.lines("SENT"):
        assert status == "SEND_OK"
        story.sent(int(number), unique_id)
    for number, state, unique_id, half_offset in producer.lines("HALF"):
        if int(number) % 3 == COMMITTED:
            assert state == "COMMIT_MESSAGE"
            story.sent(int(number), unique_id)
        elif int(number) % 3 == ROLLED_BACK:
            story.rolled_back.add(int(number))
        else:
            story.open_halves[int(number)] = (unique_id, int(half_offset))
    story.next_number += PLAIN + 10 * BATCHES + DELAYED + TRANSACTIONS


def _commit_open_halves(one: OneStore, halves: list[bytes], story: Story) -> None:
    """Transactions begun at the make before end at this one."""
    for number, (unique_id, half_offset) in story.open_halves.items():
        fields = {
            "producerGroup": "VarietyTransactions",
            "tranStateTableOffset": str(half_offset),
            "commitLogOffset": str(_decoded(halves[half_offset]).physical_offset),
            "commitOrRollback": str(TRANSACTION_COMMIT),
            "fromTransactionCheck": "false",
            "msgId": unique_id,
            "transactionId": unique_id,
        }
        rpc.ask(one.address, RequestCode.END_TRANSACTION, fields)
        story.sent(number, unique_id)
    story.open_halves.clear()


def _send_back(one: OneStore, story: Story) -> None:
    """Some messages failed at a consumer of the group: they come once more, by delay and retry topic."""
    for raw in one.read_queue(TOPIC, 0)[-SENT_BACK:]:
        message = _decoded(raw)
        fields = {
            "offset": str(message.physical_offset),
            "group": GROUP,
            "delayLevel": "1",
            "originMsgId": message.msg_id,
            "originTopic": TOPIC,
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        }
        rpc.ask(one.address, RequestCode.CONSUMER_SEND_MSG_BACK, fields)
        story.owed[int(message.properties["number"])] += 1


def _wait_saved(one: OneStore, offsets: dict[RequestCode, dict[str, object]]) -> None:
    """A kill may cost the progress of the last seconds, in both makes: wait until the files have it."""
    deadline = time.monotonic() + WITHIN_S
    while any(one.saved_offsets(SAVED[code]) != table for code, table in offsets.items()):
        assert time.monotonic() < deadline, f"not saved: {offsets}"
        time.sleep(0.2)


def _last_words(one: OneStore, story: Story) -> None:
    """Messages right before the end; the delayed ones are due when the next broker has the folder."""
    with rpc.connect(one.address) as connection:
        for place in range(LAST_PLAIN + LAST_DELAYED):
            number, unique_id = story.next_number, ids.create_unique_id()
            story.next_number += 1
            properties = {
                "number": str(number),
                "TAGS": TAGS[number % 3],
                "KEYS": f"key-{number} all",
                "UNIQ_KEY": unique_id,
                **({"DELAY": "2"} if place >= LAST_PLAIN else {}),
            }
            fields = {
                "producerGroup": "last-words",
                "topic": TOPIC,
                "defaultTopic": "TBW102",
                "defaultTopicQueueNums": "4",
                "queueId": str(number % QUEUES),
                "sysFlag": "0",
                "bornTimestamp": str(int(time.time() * 1000)),
                "flag": "0",
                "properties": names.encode_properties(properties),
                "reconsumeTimes": "0",
            }
            request = RemotingCommand.request(RequestCode.SEND_MESSAGE, fields, _body(number))
            answer = rpc.call(connection, request)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            story.sent(number, unique_id)
            story.short.add(number)


# -- what has to hold -------------------------------------------------------------------------------------------------


def _check_queues(one: OneStore, before: dict[tuple[str, int], list[bytes]]) -> None:
    """Every queue, those of the broker itself too, begins with what it had."""
    for (topic, queue_id), records in before.items():
        is_listed = topic not in (HALF_TOPIC, OP_TOPIC)
        read = one.read_queue(topic, queue_id) if is_listed else one.read_unlisted_queue(topic, queue_id, records)
        assert read[: len(records)] == records, f"{topic} {queue_id}: {len(read)} messages for {len(records)}"
        assert topic != HALF_TOPIC or len(read) == len(records)


def _check_tags(one: OneStore, before: dict[tuple[str, int], list[bytes]]) -> None:
    """A pull with a tag goes by the codes in the consume queue."""
    for queue_id in range(QUEUES):
        wanted = [raw for raw in before.get((TOPIC, queue_id), []) if _decoded(raw).tags == "TagB"]
        assert one.read_queue(TOPIC, queue_id, tags="TagB")[: len(wanted)] == wanted


def _check_keys(one: OneStore, before: dict[tuple[str, int], list[bytes]], story: Story) -> int:
    """Messages of all ages are found by their key and by their unique key; return how many were looked for."""
    places = {}
    for queue_id in range(QUEUES):
        for raw in before.get((TOPIC, queue_id), []):
            message = _decoded(raw)
            if message.physical_offset >= story.index_floor:
                places[int(message.properties["number"])] = raw
    sample = sorted(places)[::41] + sorted(places)[-5:]
    for number in sample:
        assert places[number] in one.query(TOPIC, f"key-{number}"), f"key-{number}"
        assert places[number] in one.query(TOPIC, story.unique_ids[number], unique=True), f"unique key of {number}"
    return len(sample)


def _check_story(at_rest: dict[tuple[str, int], list[bytes]], story: Story) -> None:
    """Each number is in the topic once, as it was sent; what was delayed last still waits."""
    stored: Counter[int] = Counter()
    for queue_id in range(QUEUES):
        for raw in at_rest[TOPIC, queue_id]:
            message = _decoded(raw)
            number = int(message.properties["number"])
            assert message.tags == TAGS[number % 3] and message.keys == [f"key-{number}", "all"]
            assert message.msg_id == story.unique_ids[number]
            assert decompress_body(message.body, message.sys_flag) == _body(number, short=number in story.short)
            stored[number] += 1
    waiting = set(sorted(story.owed)[-LAST_DELAYED:])
    assert set(stored) | waiting == story.stored
    assert set(stored.values()) == {1}
    assert not story.rolled_back & set(stored)
    print(f"{stored.total()} messages in the topic, each once; {len(at_rest)} queues without a gap")


def _last_file_start(before: dict[tuple[str, int], list[bytes]]) -> int:
    end = max((record.split_record(records[-1]).physical_offset for records in before.values()), default=0)
    return end - end % LOG_FILE_BYTES


def _decoded(raw: bytes) -> MessageExt:
    return record.decode_record(raw)


def _body(number: int, *, short: bool = True) -> bytes:
    """What Variety sends, or the last words do."""
    tail = 0 if short else 20_000 if number % 50 == 0 else number * 37 % 3000
    return f"body-{number}-ä消息{'x' * tail}".encode()
