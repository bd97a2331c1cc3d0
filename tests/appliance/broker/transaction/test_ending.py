"""Prepared messages and their end: seen by nobody, then by everybody once, or never."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gantrymq.log_limit import LogLimit
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from store.base.results import PutMessageResult, PutMessageStatus, StoreMessage
from store.base.running_state import RunningFlags
from tests.appliance.broker.transaction.parties import (
    COMMIT,
    GROUP,
    HALF,
    OP,
    ROLLBACK,
    TOPIC,
    UNKNOWN,
    Half,
    bodies,
    end_fields,
    stored,
    transactions_at,
)


async def test_a_prepared_message_waits_where_no_consumer_looks(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay", queue_id=2, KEYS="k1", WAIT="true")
        assert bodies(broker, 2) == []
        (waiting,) = stored(broker, HALF)
        assert (waiting.queue_offset, waiting.physical_offset) == (half.queue_offset, half.physical_offset)
        assert (waiting.body, waiting.sys_flag, waiting.queue_id) == (b"pay", 0, 0)
        assert waiting.properties == {
            "REAL_TOPIC": TOPIC,
            "KEYS": "k1",
            "TRAN_MSG": "true",
            "UNIQ_KEY": half.unique_key,
            "CLUSTER": "DefaultCluster",
            "PGROUP": GROUP,
            "WAIT": "true",
            "TAGS": "a",
            "REAL_QID": "2",
        }
        assert broker.transactions.pending == 1


async def test_a_commit_brings_the_message_to_its_topic(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay", queue_id=2)
        (waiting,) = stored(broker, HALF)
        answer = await producer.end(half, COMMIT)
        assert (answer.code, answer.remark, answer.ext_fields) == (0, None, {})
        (message,) = stored(broker, TOPIC, 2)
        assert (message.body, message.sys_flag, message.tags) == (b"pay", 8, "a")
        assert message.prepared_transaction_offset == half.physical_offset
        assert message.properties == waiting.properties
        assert (message.born_timestamp, message.born_host) == (waiting.born_timestamp, waiting.born_host)
        (op,) = stored(broker, OP)
        assert (op.body, op.properties) == (b"0", {"WAIT": "true", "TAGS": "d"})
        assert broker.transactions.pending == 0


async def test_a_rollback_leaves_an_op_message_only(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        assert (await producer.end(half, ROLLBACK)).code == 0
        assert bodies(broker) == []
        assert [op.body for op in stored(broker, OP)] == [b"0"]


async def test_unknown_gets_no_answer_and_changes_nothing(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        producer.peer.write(RemotingCommand.request(RequestCode.END_TRANSACTION, end_fields(half, UNKNOWN)).encode())
        await producer.hello()  # its answer is the first to come
        assert broker.transactions.metrics.left_open == 1
        assert broker.transactions.pending == 1
        assert stored(broker, OP) == []


async def test_of_transactions_left_open_all_are_counted_and_a_few_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.processors.transaction._log_limit", LogLimit(clock=lambda: 0.0))
    caplog.set_level("INFO", "appliance.broker.processors.transaction")
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        for _ in range(50):
            producer.peer.write(
                RemotingCommand.request(RequestCode.END_TRANSACTION, end_fields(half, UNKNOWN)).encode()
            )
        await producer.hello()
        assert broker.transactions.metrics.left_open == 50
    told = [record for record in caplog.records if record.__dict__.get("event") == "transaction_left_open"]
    assert len(told) == 20


async def test_the_second_end_of_a_transaction_is_answered_and_stores_nothing(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        for outcome in (COMMIT, COMMIT, ROLLBACK):
            assert (await producer.end(half, outcome)).code == 0
        assert bodies(broker) == [b"pay"]
        assert len(stored(broker, OP)) == 1
        assert broker.transactions.metrics.repeated == 2


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"commitLogOffset": 16777215}, "Find prepared transaction message failed"),
        ({"commitLogOffset": -1}, "Find prepared transaction message failed"),
        ({"producerGroup": "PG-other"}, "The producer group wrong"),
        ({"tranStateTableOffset": 99999}, "The transaction state table offset wrong"),
    ],
)
async def test_an_end_that_names_no_transaction_of_the_group_is_refused(
    tmp_path: Path, changes: dict[str, object], remark: str
) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        for outcome in (COMMIT, ROLLBACK):
            answer = await producer.end(half, outcome, **changes)
            assert (answer.code, answer.remark) == (1, remark)
        assert bodies(broker) == [] and stored(broker, OP) == []


@pytest.mark.parametrize(
    "changes",
    [{"commitLogOffset": 1 << 70}, {"tranStateTableOffset": "x"}, {"commitOrRollback": 5}, {"commitOrRollback": "x"}],
)
async def test_an_end_with_a_malformed_field_is_told_which(tmp_path: Path, changes: dict[str, object]) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        answer = await producer.end(half, COMMIT, **changes)
        assert answer.code in (1, 29)  # RocketMQ 4.9's code, and 5's
        assert answer.remark
        assert bodies(broker) == [] and stored(broker, OP) == []


async def test_a_message_that_is_no_half_message_can_not_be_committed_again(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        await producer.end(half, COMMIT)
        (message,) = stored(broker, TOPIC, 1)
        answer = await producer.end(Half(message.queue_offset, message.physical_offset, half.unique_key), COMMIT)
        assert (answer.code, answer.remark) == (1, "Find prepared transaction message failed")
        assert bodies(broker) == [b"pay"]


@pytest.mark.parametrize(
    ("settings", "properties", "sys_flag", "code", "remark"),
    [
        ({"reject_transaction_message": True}, {"TRAN_MSG": "true", "PGROUP": GROUP}, 4, 16, "transaction message is"),
        ({}, {"TRAN_MSG": "true", "PGROUP": GROUP, "DELAY": "3"}, 4, 13, "can't be delayed"),
        ({}, {"TRAN_MSG": "true"}, 4, 13, "PGROUP"),
        ({}, {"TRAN_MSG": "true", "PGROUP": GROUP, "long": "x" * 32_600}, 4, 13, "properties take"),
        ({}, {"TRAN_MSG": "false"}, 4, 13, "TRAN_MSG is not true"),
        ({}, {}, 12, 13, "TRAN_MSG is not true"),
    ],
)
async def test_what_would_never_be_seen_again_is_refused(
    tmp_path: Path, settings: dict[str, Any], properties: dict[str, Any], sys_flag: int, code: int, remark: str
) -> None:
    async with transactions_at(tmp_path, **settings) as (broker, producer):
        answer = await producer.send(b"pay", sys_flag=sys_flag, **properties)
        assert answer.code == code
        assert remark in (answer.remark or "")
        assert stored(broker, HALF) == [] and bodies(broker) == []


async def test_a_rejecting_broker_says_it_as_the_original_does(tmp_path: Path) -> None:
    async with transactions_at(tmp_path, reject_transaction_message=True) as (_, producer):
        answer = await producer.send(b"hi", sys_flag=4, TRAN_MSG="true", PGROUP=GROUP)
        assert answer.remark == "the broker[127.0.0.1] sending transaction message is forbidden"


async def test_a_batch_can_not_be_prepared(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        batch = encode_batch([Message(TOPIC, b"one"), Message(TOPIC, b"two")])
        answer = await producer.send(batch, sys_flag=4, batch=True, TRAN_MSG="true", PGROUP=GROUP)
        assert answer.code == 13
        assert stored(broker, HALF) == [] and bodies(broker) == []


async def test_a_commit_that_can_not_be_stored_leaves_the_transaction_open(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        broker.store.parts.state.set_flag(RunningFlags.DISK_FULL, True)
        for outcome in (COMMIT, ROLLBACK):
            answer = await producer.end(half, outcome)
            assert (answer.code, answer.remark) == (14, "Service not available now.")
        assert broker.transactions.pending == 1
        broker.store.parts.state.set_flag(RunningFlags.DISK_FULL, False)
        assert (await producer.end(half, COMMIT)).code == 0
        assert bodies(broker) == [b"pay"]


async def test_an_op_message_that_was_refused_is_written_by_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        put = broker.store.put_message

        def no_ops(message: StoreMessage, *, delay: bool = True) -> PutMessageResult:
            if message.topic == OP:
                return PutMessageResult(PutMessageStatus.OS_PAGE_CACHE_BUSY)
            return put(message, delay=delay)

        monkeypatch.setattr(broker.store, "put_message", no_ops)
        assert (await producer.end(half, COMMIT)).code == 0
        monkeypatch.undo()
        assert (await producer.end(half, COMMIT)).code == 0
        assert bodies(broker) == [b"pay"] and stored(broker, OP) == []
        assert broker.transactions.pending == 0
        await broker.transaction_checks.round()
        assert [op.body for op in stored(broker, OP)] == [b"0"]


async def test_with_sync_flush_an_acknowledged_end_is_on_disk(tmp_path: Path) -> None:
    async with transactions_at(tmp_path, store={"flush_disk_type": "SYNC_FLUSH"}) as (broker, producer):
        half = await producer.prepare(b"pay")
        assert broker.store.flushed_offset >= half.physical_offset
        assert (await producer.end(half, COMMIT)).code == 0
        assert broker.store.flushed_offset == broker.store.max_physical_offset
