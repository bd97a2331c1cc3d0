"""The same questions about one folder to our broker and to Apache's: pulls, offsets, times, keys. The answers agree.

Two differences are ours on purpose and are taken out before comparing: of messages stored in the same millisecond a
search by time finds the first here and any of them there; and a pull may go on in the next consume-queue file.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from appliance.bench import rpc
from gantrymq.message import ids, record
from gantrymq.message import properties as names
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from store import MessageStoreConfig, PutMessageStatus, StoreBatch, StoreMessage
from tests.interop.stores.one_store import LOG_FILE_BYTES, OneStore, split
from tests.store.conftest import opened
from tests.store.golden import commit_log_records

pytestmark = pytest.mark.slow

TOPIC = "Beside"
QUEUES = 4  # the last stays empty
MESSAGES = 1500
TAGS = ("TagA", "TagB", "TagC", "")
HOST = ids.encode_host("127.0.0.1", 10911)
PULLS, TIMES, KEYS, PLACES = 1200, 200, 150, 100
Question = tuple[RequestCode, dict[str, str]]
Answer = tuple[Any, ...]


class Clock:
    """Hours pass while the folder is filled; some messages share their millisecond."""

    def __init__(self, chance: random.Random) -> None:
        self.now = time.time() - 3 * 3600
        self._chance = chance

    def __call__(self) -> float:
        self.now += self._chance.choice((0, 0, 0.001, 0.4, 1, 5))
        return self.now


def fill(folder: Path, chance: random.Random) -> None:
    """Single messages and batches of all sizes in three queues. The oldest two files of the log are gone then."""
    config = MessageStoreConfig(
        root=folder, commit_log_file_bytes=LOG_FILE_BYTES, consume_queue_file_bytes=6_000_000, index_slots=100,
        index_entries=400,
    )  # fmt: skip
    store = opened(config, clock=Clock(chance))
    for number in range(MESSAGES):
        queue_id = chance.choice((0, 0, 0, 1, 1, 2))
        body = chance.randbytes(chance.choice((0, 20, 900, 3000, 30_000)))
        properties = {"KEYS": f"k{number % 300} all", "UNIQ_KEY": f"unique-{number}", "TAGS": chance.choice(TAGS)}
        properties = {key: text for key, text in properties.items() if text}
        if chance.random() < 0.1:
            batch = encode_batch([Message(TOPIC, body[:500], properties=properties) for _ in range(5)])
            put = store.put_batch(StoreBatch(TOPIC, queue_id, batch, b"", 0, 0, 1, HOST, HOST))
        else:
            encoded = names.encode_properties(properties).encode()
            put = store.put_message(StoreMessage(TOPIC, queue_id, body, encoded, 0, 0, 1, HOST, HOST))
        assert put.status is PutMessageStatus.PUT_OK
    store.checkpoint.keep_from(2 * LOG_FILE_BYTES)  # as retention does
    store.close()
    for path in sorted((folder / "commitlog").iterdir())[:2]:
        path.unlink()


def questions(folder: Path, chance: random.Random) -> list[Question]:
    """Numbers in and around what the folder has."""
    records = [record.split_record(raw) for _offset, raw in commit_log_records(folder)]
    first_ms, last_ms = records[0].store_timestamp, records[-1].store_timestamp
    ends = {queue_id: max(f.queue_offset for f in records if f.queue_id == queue_id) + 1 for queue_id in (0, 1, 2)}
    starts = {queue_id: min(f.queue_offset for f in records if f.queue_id == queue_id) for queue_id in (0, 1, 2)}
    asked: list[Question] = []
    for queue_id in range(QUEUES):
        place = {"topic": TOPIC, "queueId": str(queue_id)}
        for code in (RequestCode.GET_MIN_OFFSET, RequestCode.GET_MAX_OFFSET, RequestCode.GET_EARLIEST_MSG_STORETIME):
            asked.append((code, place))
    for _ in range(PULLS):
        queue_id = chance.randrange(QUEUES)
        start, end = starts.get(queue_id, 0), ends.get(queue_id, 0)
        offset = chance.choice(
            (chance.randint(start, max(end, 1)), chance.randint(-2, start + 2), end + chance.randint(-3, 9))
        )
        asked.append((RequestCode.PULL_MESSAGE, _pull(queue_id, offset, chance)))
    for _ in range(TIMES):
        at = chance.choice(
            (
                chance.choice(records).store_timestamp + chance.randint(-2, 2),
                chance.randint(first_ms - 9_000_000, last_ms + 5000),
            )
        )
        fields = {"topic": TOPIC, "queueId": str(chance.randrange(QUEUES)), "timestamp": str(at)}
        asked.append((RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields))
    for _ in range(KEYS):
        begin = chance.choice((0, chance.randint(first_ms, last_ms)))
        fields = {
            "topic": TOPIC,
            "key": chance.choice((f"k{chance.randrange(310)}", "all", f"unique-{chance.randrange(MESSAGES + 9)}")),
            "maxNum": str(chance.choice((1, 7, 32, 64, 200))),
            "beginTimestamp": str(begin),
            "endTimestamp": str(chance.choice((last_ms + 1000, begin + chance.randint(0, 5_000_000)))),
        }
        asked.append((RequestCode.QUERY_MESSAGE, fields))
    for fields in chance.sample(records, PLACES):
        asked.append((RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(fields.physical_offset)}))
    return asked


def _pull(queue_id: int, offset: int, chance: random.Random) -> dict[str, str]:
    return {
        "consumerGroup": "TOOLS_CONSUMER",
        "topic": TOPIC,
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": str(chance.choice((0, 1, 2, 8, 32, 33, 500))),
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": chance.choice(("*", "*", "TagA", "TagB || TagC", "Nothing")),
        "subVersion": "0",
        "expressionType": "TAG",
    }


def answers(one: OneStore, asked: list[Question]) -> list[Answer]:
    found: list[Answer] = []
    with rpc.connect(one.address) as connection:
        for code, fields in asked:
            answer = rpc.call(connection, RemotingCommand.request(code, fields))
            told = {key: text for key, text in (answer.ext_fields or {}).items() if not key.startswith("indexLast")}
            found.append((answer.code, told, bytes(answer.body or b"")))
    return found


def test_two_makes_of_broker_answer_alike(tmp_path: Path) -> None:
    seed = 20_240_607
    fill(tmp_path / "store", random.Random(seed))
    asked = questions(tmp_path / "store", random.Random(seed + 1))
    times = {
        (fields.queue_id, fields.queue_offset): fields.store_timestamp
        for fields in (record.split_record(raw) for _offset, raw in commit_log_records(tmp_path / "store"))
    }
    with OneStore(tmp_path, mappedFileSizeConsumeQueue="6000000") as one:
        one.open("gantry")
        rpc.create_topic(one.address, TOPIC, QUEUES)
        ours = answers(one, asked)
        one.leave(kill=False)
        one.open("apache")
        apaches = answers(one, asked)
    differences = []
    for (code, fields), our, theirs in zip(asked, ours, apaches, strict=True):
        if our == theirs:
            continue
        if code is RequestCode.SEARCH_OFFSET_BY_TIMESTAMP and our[0] == theirs[0]:
            places = [(int(fields["queueId"]), int(answer[1]["offset"])) for answer in (our, theirs)]
            if places[0] < places[1] and times[places[0]] == times[places[1]]:
                continue
        differences.append(f"{code.name} {fields}: ours {_short(our)}, Apache's {_short(theirs)}")
    assert not differences, f"{len(differences)} of {len(asked)}:\n" + "\n".join(differences[:12])
    codes = [answer[0] for answer in ours]
    print(f"{len(asked)} questions, answers by code: { {code: codes.count(code) for code in sorted(set(codes))} }")


def _short(answer: Answer) -> str:
    code, told, body = answer
    places = [record.split_record(raw).queue_offset for raw in split(body)][:40] if body else []
    return f"{code} {told} {len(body)} bytes, queue offsets {places}"
