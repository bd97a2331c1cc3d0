"""What Apache's broker wrote and said of transactions, done again by our code: the same to the byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.transaction import half as halves
from appliance.broker.transaction.ended import EndedHalves
from appliance.broker.transaction.half import HalfMessage
from appliance.broker.transaction.service import TransactionService
from gantrymq.message import properties as keys
from gantrymq.message.record import RecordFields, decode_record, encode_fields, split_record
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from store import MessageStoreConfig, StoreMessage
from tests.any_disk import ANY_DISK
from tests.appliance.broker.transaction.parties import HALF, OP
from tests.gantrymq.remoting.golden import captured
from tests.store.conftest import opened
from tests.store.golden import commit_log_records, unpack
from tests.waiting import Clock

CHECKS = {"java_json": 5, "java_rocketmq": 5, "go": 1}  # captures, and how many questions they have at least


class LogClock(Clock):
    """As the record to come wants it."""

    def set_ms(self, milliseconds: int) -> None:
        self.now = (milliseconds + 0.5) / 1000


class Again:
    """A store that is filled as Apache's was: transactions by our code, anything else as it stands there."""

    def __init__(self, root: Path) -> None:
        self.clock, self.op_clock = LogClock(0.0), LogClock(0.0)
        files = {"commit_log_file_bytes": 1 << 20, "index_slots": 100, "index_entries": 400}
        config = MessageStoreConfig(root=root, **files, **ANY_DISK)
        self.store = opened(config, clock=self.clock)
        self.transactions = TransactionService(self.store, EndedHalves(), b"", clock=self.op_clock)
        self.made: list[str] = []

    def put(self, raw: bytes) -> None:
        """Do what led to the record."""
        fields = split_record(raw)
        properties = keys.decode_properties(fields.properties)
        self.clock.set_ms(fields.store_timestamp)
        self.op_clock.set_ms(fields.born_timestamp if fields.topic == OP.encode() else fields.store_timestamp)
        self.transactions.store_host = fields.store_host
        if fields.topic == OP.encode():
            self.made.append("op")
            self.transactions.roll_back(
                self._half(int(raw[fields.body_position : fields.body_position + fields.body_bytes]))
            )
        elif fields.prepared_transaction_offset:
            record = self.store.message_bytes(fields.prepared_transaction_offset)
            assert record is not None
            self.made.append("commit and op")
            self.transactions.commit(halves.read_half(record))
        elif fields.topic == HALF.encode() and keys.TRANSACTION_CHECK_TIMES in properties:
            self.made.append("copy")
            first = next(half for half in self._halves() if half.unique_key == properties[keys.UNIQ_KEY])
            self.store.put_message(halves.prepared_again(first, {keys.TRANSACTION_CHECK_TIMES: "1"}))
            self.transactions.ended.skip_to(first.queue_offset + 1)
        elif fields.topic == HALF.encode():
            self.made.append("half")
            encoded = halves.prepared_properties(as_sent(properties), properties[keys.CLUSTER], *real_place(properties))
            self.store.put_message(stored_as(fields, raw, encoded))
        else:
            self.store.put_message(stored_as(fields, raw, fields.properties), delay=False)

    def _half(self, queue_offset: int) -> HalfMessage:
        return list(self._halves())[queue_offset]

    def _halves(self) -> Iterator[HalfMessage]:
        for unit in self.store.consume_queue_units(HALF, 0, 0, 100):
            record = self.store.message_bytes(unit.physical_offset)
            assert record is not None
            yield halves.read_half(record)


def as_sent(properties: dict[str, str]) -> dict[str, str]:
    """The properties as the Java client sent them, in its order."""
    order = (keys.KEYS, keys.TRAN_MSG, keys.UNIQ_KEY, keys.WAIT, keys.PGROUP, keys.TAGS)
    return {name: properties[name] for name in order}


def real_place(properties: dict[str, str]) -> tuple[str, int]:
    return properties[keys.REAL_TOPIC], int(properties[keys.REAL_QID])


def stored_as(fields: RecordFields, raw: bytes, properties: bytes) -> StoreMessage:
    return StoreMessage.again(fields.topic.decode(), fields.queue_id, memoryview(raw), fields, properties)


def test_a_store_with_transactions_is_made_again_to_the_byte(tmp_path: Path) -> None:
    golden = list(commit_log_records(unpack("clean_broker", tmp_path / "golden").root))
    again = Again(tmp_path / "ours")
    try:
        for place, raw in golden:
            if again.store.max_physical_offset == place:  # not yet made together with the one before
                again.put(raw)
            ours = again.store.message_bytes(place)
            assert ours is not None and bytes(ours) == raw, decode_record(raw)
        assert again.store.max_physical_offset == golden[-1][0] + len(golden[-1][1])
    finally:
        again.store.close()
    assert again.made == ["half"] * 3 + ["commit and op", "op", "copy", "commit and op"]


@pytest.mark.parametrize("name", CHECKS)
def test_questions_are_the_captured_ones(name: str) -> None:
    """39: from the half message that the captured copy was made of."""
    asked = 0
    for frame in captured(name):
        if frame["code"] != RequestCode.CHECK_TRANSACTION_STATE or frame["dir"] != "s2c":
            continue
        request = RemotingCommand.decode(bytes.fromhex(frame["hex"])[4:])
        body = bytes(request.body)
        message = decode_record(body)
        before = dict(message.properties)
        times = int(before.pop(keys.TRANSACTION_CHECK_TIMES))
        if times > 1:
            before[keys.TRANSACTION_CHECK_TIMES] = str(times - 1)
        if name == "go":  # this client sends no WAIT; the question has one all the same
            del before[keys.WAIT]
        else:
            before[keys.WAIT] = "true"
        fields = split_record(body)._replace(
            topic=HALF.encode(), queue_id=0, properties=keys.encode_in_java_order(before).encode()
        )
        half = halves.read_half(memoryview(encode_fields(fields, message.body)))
        ext_fields, ours = halves.check_request(half, times, message.queue_offset, message.physical_offset)
        assert ext_fields == request.ext_fields
        assert ours == body
        assert (request.is_oneway, request.remark) == (True, None)
        asked += 1
    assert asked >= CHECKS[name]
