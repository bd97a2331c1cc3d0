"""Files that a crash, a disk, another make of broker or somebody with an editor may have left, and what they hold."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections import deque
from pathlib import Path

from hypothesis import strategies as st

from appliance.acl.account_file import AccountFileError, read_content
from appliance.acl.address import AddressPatternError, compile_patterns
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.sql_filter import SqlError
from appliance.broker.sql_filter.condition import compile_condition
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.transaction.half import HalfMessage, read_half, verdict
from appliance.errors import BrokerError
from appliance.process.json_file import StateFileError
from appliance.settings.live import plan_update
from appliance.settings.loader import read_properties
from appliance.settings.properties_file import with_values
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from gantrymq.errors import ConfigError, RecordError
from gantrymq.message import properties as keys
from gantrymq.message import sysflag
from gantrymq.message.compression import decompress_body
from gantrymq.message.ids import encode_host
from gantrymq.message.model import MessageExt
from gantrymq.message.record import decode_record, decode_records, encode_record, split_record
from gantrymq.message.topics import TRANS_HALF_TOPIC
from store.base.results import PutMessageStatus, StoreMessage
from store.base.timer import TimerRules
from store.index.file import HEADER_BYTES, IndexDamaged, IndexFile
from store.queues.consume_queue import ConsumeQueue
from store.queues.descriptors import DescriptorCache
from store.startup.checkpoint import Checkpoint
from tests.fuzz.fuzzing import Fuzz, near, texts

HOST = encode_host("127.0.0.1", 10911)
PROPERTIES = [
    b"KEYS\x01k1 k2\x02TAGS\x01TagA\x02UNIQ_KEY\x017F00000100002A9F0000000000000000",
    b"TIMER_DELAY_SEC\x0110\x02TIMER_DELIVER_MS\x011700000000000\x02",
    b"TRAN_MSG\x01true\x02PGROUP\x01g\x02REAL_TOPIC\x01T\x02REAL_QID\x010\x02TRANSACTION_CHECK_TIMES\x011",
    b"DELAY\x013\x02INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b\x02WAIT\x01false",
]


def record(topic: str, properties: dict[str, str], sys_flag: int = 0, body: bytes = b"hello") -> bytes:
    return encode_record(
        MessageExt(
            topic, body, 0, properties, 0, 5, 100, 0, sys_flag, 1, ("127.0.0.1", 1), 2, ("127.0.0.1", 2), 0, 0, 0
        )
    )


RECORDS = [
    record("T", {"TAGS": "a"}),
    record(TRANS_HALF_TOPIC, keys.decode_properties(PROPERTIES[2])),
    record("T", {}, sysflag.COMPRESSED, zlib.compress(b"x" * 100)),
    record("T", {}) * 3,
]


def test_records(fuzz: Fuzz) -> None:
    def target(data: bytes) -> None:
        for read in (decode_records, lambda view: [decode_record(view, check_crc=False)]):
            try:
                for message in read(data):
                    assert message.delay_level >= 0
                    decompress_body(message.body, message.sys_flag, max_bytes=1 << 20)
            except RecordError:
                pass
        with contextlib.suppress(RecordError):
            assert split_record(data).size_bytes <= len(data)
        with contextlib.suppress(RecordError):
            half_facts(read_half(memoryview(data)))

    fuzz(near(RECORDS), target)


def half_facts(half: HalfMessage) -> None:
    """Everything that is asked of a half message."""
    assert isinstance(half.check_times, int)
    assert isinstance(half.queue_offset, int)
    assert isinstance(half.first_queue_offset, int)
    verdict(half, 10_000, timeout_ms=6000, check_times_max=15, reserved_ms=1)
    half.real_place()


def test_properties(fuzz: Fuzz) -> None:
    rules = TimerRules(enabled=True, delay_ms_max=3 * 86_400_000)

    def target(data: bytes) -> None:
        found = keys.decode_properties(data)
        is_text = "\ufffd" not in data.decode(errors="replace")
        for name in (keys.KEYS, keys.TAGS, keys.TIMER_DELAY_SEC, keys.DELAY):
            value = keys.find_property(data, name.encode())
            if is_text:
                assert found.get(name) == (value.decode() if value is not None else None)
        keys.replace_properties(data, {b"A": b"1", b"KEYS": None})
        assert keys.decode_properties(keys.encode_properties(found)) == found
        message = StoreMessage("T", 0, b"", data, 0, 0, 0, HOST, HOST)
        diverted = rules.divert(message, 1_700_000_000_000)
        assert isinstance(diverted, StoreMessage | PutMessageStatus)

    fuzz(near(PROPERTIES), target)


def test_conditions(fuzz: Fuzz) -> None:
    originals = [
        b"a = 1 AND b <> 'x' OR NOT (c BETWEEN 1 AND 2.5e3)",
        b"a IS NOT NULL AND b IN ('x', 'y''z') AND c NOT BETWEEN -1 AND 1",
        b"TRUE OR a >= 9223372036854775807 AND NOT NOT FALSE",
    ]

    def target(value: tuple[str, dict[str, str]]) -> None:
        text, properties = value
        try:
            condition = compile_condition(text)
        except SqlError:
            return
        assert condition.is_met(properties) in (True, False)

    words = st.lists(
        st.sampled_from(
            [
                "a", "b", "c", "1", "2.5", "'x'", "(", ")", "AND", "OR", "NOT", "=", "<>", "<", "<=", "IS", "NULL",
                "IN", ",", "BETWEEN", "TRUE", "-",
            ]
        )
    )  # fmt: skip
    conditions = near(originals).map(lambda data: data.decode(errors="replace")) | words.map(" ".join)
    deep = st.integers(1, 5000).map(lambda count: "(" * count + "a = 1" + ")" * count)
    long = st.integers(1, 3000).map(lambda count: " OR ".join(["a = 1"] * count))
    fuzz(st.tuples(conditions | deep | long, st.dictionaries(st.sampled_from("abc"), texts)), target)


def test_settings(fuzz: Fuzz) -> None:
    originals = [b"# c\nbrokerName = a\r\nlistenPort=1\n\n!x\nk=v=w", b"traceOn=false\nwaitTimeMillsInSendQueue=20"]
    configs = [BrokerConfig(listen_port=0), NamesrvConfig(listen_port=0)]

    def target(data: bytes) -> None:
        text = data.decode(errors="replace")
        try:
            before = read_properties(text)
        except ConfigError:
            before = {}
        changed = with_values(text, {"traceOn": "true", "new": "1"})
        assert with_values(changed, {"traceOn": "true", "new": "1"}) == changed
        try:
            after = read_properties(changed)
        except ConfigError:
            after = before | {"traceOn": "true", "new": "1"}
        assert after == before | {"traceOn": "true", "new": "1"} or not before
        for config in configs:
            with contextlib.suppress(BrokerError):
                plan_update([config], data, changeable={"traceOn", "waitTimeMillsInSendQueue", "orderMessageEnable"})

    fuzz(near(originals), target)


def test_accounts(fuzz: Fuzz, tmp_path: Path) -> None:
    original = b"""globalWhiteRemoteAddresses:
- 10.10.103.*
- "2001:db8::{1,2}"
accounts:
- accessKey: user1234
  secretKey: 12345678
  whiteRemoteAddress: 192.168.0-5.*
  admin: false
  defaultTopicPerm: DENY
  topicPerms: [TopicA=DENY, TopicB=PUB|SUB]
dataVersion: [{counter: 1, timestamp: 2}]
"""
    path = tmp_path / "plain_acl.yml"

    def target(data: bytes) -> None:
        path.write_bytes(data)
        try:
            content = read_content(path)
        except AccountFileError as exc:
            assert "12345678" not in str(exc) or b"user1234" not in data
        else:
            content.is_white("10.0.0.1")
        with contextlib.suppress(AddressPatternError):
            compile_patterns([data.decode(errors="replace")])("::1")

    aliases = st.just(b"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\naccounts: *c")
    fuzz(near([original, b"10.0.0.{1,2}", b"*.*.*.*", b"fe80::1-ff"]) | aliases, target)


def test_tables_of_the_broker(fuzz: Fuzz, tmp_path: Path) -> None:
    config = BrokerConfig(listen_port=0)
    path = tmp_path / "table.json"
    originals = [
        b'{"dataVersion":{"counter":1,"timestamp":2},"topicConfigTable":{"T":{"topicName":"T","perm":6}}}',
        b'{"offsetTable":{"T@g":{0:1,1:2}}}',
        b'{"subscriptionGroupTable":{"g":{"groupName":"g","retryQueueNums":1}}}',
    ]

    def target(data: bytes) -> None:
        for manager in (TopicConfigManager, ConsumerOffsetManager, SubscriptionGroupManager):
            for old in tmp_path.iterdir():
                old.unlink()
            path.write_bytes(data)
            with contextlib.suppress(StateFileError):
                manager(path, config).load()

    fuzz(near(originals), target)


def test_checkpoints(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    right = Checkpoint(path)
    right.physic_ms, right.logics_ms = 1_700_000_000_000, 1_700_000_000_001
    right.save()
    originals = [path.read_bytes()[:600]]

    def target(data: bytes) -> None:
        path.write_bytes(data)
        checkpoint = Checkpoint(path)
        checkpoint.load()
        assert checkpoint.recovery_bound_ms() >= 0

    fuzz(near(originals), target)


def test_index_files(fuzz: Fuzz, tmp_path: Path) -> None:
    path = tmp_path / "20260101000000000"
    slots, entries = 8, 16
    right = IndexFile(path, slots, entries)
    right.put_many([(number * 7, 100 * number, 1000 * number) for number in range(1, 9)])
    right.sync()
    right.close()
    originals = [path.read_bytes()]

    def target(data: bytes) -> None:
        path.write_bytes(
            data[: HEADER_BYTES + 4 * slots + 20 * entries].ljust(HEADER_BYTES + 4 * slots + 20 * entries, b"\0")
        )
        index = IndexFile(path, slots, entries)
        try:
            index.is_sane()
            index.first_offset()
            for key_hash in (0, 7, 14, 1 << 31):
                with contextlib.suppress(IndexDamaged):
                    offsets: list[int] = []
                    deque(index.search(key_hash, offsets, 10, 0, 1 << 62))
                    assert len(offsets) <= 10
            index.cut_below(450)
        finally:
            index.close()

    fuzz(near(originals), target)


def test_consume_queues(fuzz: Fuzz, tmp_path: Path) -> None:
    folder = tmp_path / "T" / "0"
    folder.mkdir(parents=True)
    unit = struct.Struct(">qiq")
    originals = [b"".join(unit.pack(100 * number, 100, 5) for number in range(count)) for count in (0, 3, 10)]
    descriptors = DescriptorCache()

    def target(value: tuple[bytes, bytes]) -> None:
        for old in folder.iterdir():
            old.unlink()
        for number, data in enumerate(value):
            (folder / f"{200 * number:020d}").write_bytes(data[:200].ljust(200, b"\0"))
        queue = ConsumeQueue(folder, "T", 0, 200, descriptors)
        queue.load()
        assert 0 <= queue.next_index <= 20
        for index in range(-1, 22):
            queue.unit_at(index)
        queue.cut_physical(500)
        queue.rewind(300)
        queue.correct_min(200)
        descriptors.close()

    fuzz(st.tuples(near(originals), near(originals)), target)
