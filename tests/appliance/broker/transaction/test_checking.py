"""Transactions that nobody ended: their producers are asked, again and again, and at last they are put away."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from appliance.broker.transaction.ended import EndedHalves
from gantrymq.message.ids import encode_host
from gantrymq.message.properties import encode_properties
from gantrymq.remoting.codes import RequestCode
from store.base.errors import NotReadableNow
from store.base.results import ConsumeQueueUnit, StoreMessage
from store.base.running_state import RunningFlags
from store.log.commit_log import CommitLog
from tests.appliance.broker.runtime_table import runtime_table
from tests.appliance.broker.transaction.parties import (
    CHECKER,
    COMMIT,
    DISCARDED,
    GROUP,
    HALF,
    OLD_MS,
    OP,
    ROLLBACK,
    TOPIC,
    ProducerPeer,
    bodies,
    stored,
    transactions_at,
)
from tests.appliance.peer import connected

HOUR_S = 3600
DAYS_MS = 80 * HOUR_S * 1000  # older than files are kept


async def test_an_open_transaction_is_written_again_and_its_producer_is_asked(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay", queue_id=2, age_ms=OLD_MS)
        await producer.hello()
        await broker.transaction_checks.round()
        copy, message, request = await producer.asked()
        assert (message.topic, message.queue_id, message.body) == (TOPIC, 2, b"pay")
        assert (message.queue_offset, message.physical_offset) == (copy.queue_offset, copy.physical_offset)
        assert request.ext_fields["transactionId"] == half.unique_key
        assert request.ext_fields["offsetMsgId"] == message.offset_msg_id
        assert message.properties["WAIT"] == "false"
        first, again = stored(broker, HALF)
        assert (again.queue_offset, again.physical_offset) == (copy.queue_offset, copy.physical_offset)
        assert again.properties == first.properties | {"TRANSACTION_CHECK_TIMES": "1"}
        assert broker.offsets.query(CHECKER, HALF, 0) == 1
        assert (await producer.end(copy, COMMIT, fromTransactionCheck="true")).code == 0
        assert bodies(broker, 2) == [b"pay"]
        await broker.transaction_checks.round()
        assert broker.offsets.query(CHECKER, HALF, 0) == 2
        assert broker.offsets.query(CHECKER, OP, 0) == 1
        assert broker.transactions.metrics.checks_sent == 1


async def test_a_half_message_that_can_not_be_read_now_is_looked_at_in_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged unit of the queue is made again from the log, which may take a while."""
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.prepare(b"pay", age_ms=OLD_MS)
        await producer.hello()
        with monkeypatch.context() as patch:
            patch.setattr(broker.store, "consume_queue_units", lambda *_place: [])
            patch.setattr(broker.store, "message_at", is_looked_for)
            await broker.transaction_checks.round()
        await broker.transaction_checks.round()
        assert broker.transactions.metrics.checks_sent == 1


def is_looked_for(*_place: object) -> None:
    raise NotReadableNow("its place is being looked for")


async def test_a_start_waits_for_an_end_that_can_not_be_read_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        half = await producer.prepare(b"pay")
        await producer.end(half, COMMIT)
        store, read, tries = broker.store, broker.store.consume_queue_units, 0

        def units(topic: str, queue_id: int, offset: int, count: int) -> list[ConsumeQueueUnit]:
            nonlocal tries
            tries += 1
            return read(topic, queue_id, offset, count) if tries > 4 else []

        monkeypatch.setattr(store, "consume_queue_units", units)
        monkeypatch.setattr(store, "message_at", is_looked_for)
        assert half.queue_offset in EndedHalves.load(store, 0, 0)


async def test_half_messages_in_a_queue_that_has_begun_again_are_asked_about(tmp_path: Path) -> None:
    """306 removes the queues of halves and ends when all of them have expired: the next ones are at 0 again."""
    async with transactions_at(tmp_path) as (broker, producer):
        for number in range(3):
            await producer.end(await producer.prepare(b"%d" % number, age_ms=OLD_MS), COMMIT)
        await broker.transaction_checks.round()
        assert broker.offsets.query(CHECKER, HALF, 0) == 3
        await producer.end(await producer.prepare(b"not passed", age_ms=OLD_MS), COMMIT)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CommitLog, "min_offset", broker.store.max_physical_offset)
            assert (await producer.peer.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)).code == 0
        ended = await producer.prepare(b"ended", age_ms=OLD_MS)
        await producer.end(ended, ROLLBACK)
        for number in range(4):
            await producer.prepare(b"%d" % number, age_ms=OLD_MS)
        await producer.hello()
        assert (ended.queue_offset, broker.transactions.pending) == (0, 4)
        await broker.transaction_checks.round()
        assert broker.transactions.metrics.checks_sent == 4
        assert (broker.offsets.query(CHECKER, HALF, 0), broker.offsets.query(CHECKER, OP, 0)) == (5, 1)


async def test_a_start_looks_at_all_of_a_half_queue_that_ends_before_its_progress(tmp_path: Path) -> None:
    """RocketMQ's 306 leaves the progress as it was."""
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.prepare(b"open")
        await producer.end(await producer.prepare(b"ended"), COMMIT)
        ended = EndedHalves.load(broker.store, 1000, 1000)
        assert (ended.position, ended.waiting(broker.store), 1 in ended) == (0, 1, True)


async def test_what_ended_is_passed_and_what_is_young_waits(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        halves = [await producer.prepare(b"%d" % number, age_ms=OLD_MS) for number in range(100)]
        young = await producer.prepare(b"young")
        for half in halves:
            await producer.end(half, COMMIT)
        assert broker.transactions.pending == 1
        await broker.transaction_checks.round()
        assert broker.offsets.query(CHECKER, HALF, 0) == young.queue_offset
        assert broker.offsets.query(CHECKER, OP, 0) == 100
        assert broker.transactions.metrics.checks_sent == 0
        assert broker.transactions.pending == 1


async def test_the_progress_of_the_op_queue_waits_for_ends_that_a_round_has_not_passed(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        old = await producer.prepare(b"old", age_ms=OLD_MS)
        await producer.prepare(b"young")
        ended_early = await producer.prepare(b"ended early")
        await producer.end(ended_early, ROLLBACK)
        await producer.end(old, ROLLBACK)
        await broker.transaction_checks.round()
        assert broker.offsets.query(CHECKER, HALF, 0) == 1
        assert broker.offsets.query(CHECKER, OP, 0) == -1
        assert broker.transactions.pending == 1


async def test_any_member_of_the_group_is_asked_in_turn(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer), connected(broker.port) as peer:
        other = ProducerPeer(peer)
        await producer.hello()
        await other.hello("10.0.0.2@p")
        for number in range(2):
            await producer.prepare(b"%d" % number, age_ms=OLD_MS)
        await broker.transaction_checks.round()
        asked = {(await each.asked())[1].body for each in (producer, other)}
        assert asked == {b"0", b"1"}


async def test_without_a_producer_the_check_counts_and_nobody_is_asked(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.prepare(b"pay", age_ms=OLD_MS)
        await broker.transaction_checks.round()
        assert [half.properties.get("TRANSACTION_CHECK_TIMES") for half in stored(broker, HALF)] == [None, "1"]
        assert broker.transactions.metrics.unanswerable == 1


async def test_after_the_last_check_a_transaction_is_put_away_and_can_be_resumed(tmp_path: Path) -> None:
    async with transactions_at(tmp_path, transaction_check_max=2) as (broker, producer):
        half = await producer.prepare(b"pay", age_ms=OLD_MS)
        await producer.hello()
        for _ in range(2):
            await broker.transaction_checks.round()
            await producer.asked()
        await broker.transaction_checks.round()
        (away,) = stored(broker, DISCARDED)
        assert (away.body, away.properties["TRANSACTION_CHECK_TIMES"]) == (b"pay", "2")
        assert away.properties["UNIQ_KEY"] == half.unique_key
        assert broker.transactions.pending == 0
        assert runtime_table(broker)["transactionDiscarded"] == "1"
        answer = await producer.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": away.offset_msg_id})
        assert answer.code == 0
        await broker.transaction_checks.round()
        copy, _, _ = await producer.asked()
        assert stored(broker, HALF)[-1].properties["TRANSACTION_CHECK_TIMES"] == "1"
        assert (await producer.end(copy, COMMIT)).code == 0
        assert bodies(broker) == [b"pay"]


async def test_a_transaction_older_than_the_log_is_kept_is_put_away(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.prepare(b"pay", age_ms=DAYS_MS)
        await broker.transaction_checks.round()
        assert [message.body for message in stored(broker, DISCARDED)] == [b"pay"]


@pytest.mark.parametrize("message_id", ["", "x", "7F00000100002A9F00000000", "7F00000100002A9F0000000000FFFFFF"])
async def test_only_half_messages_are_resumed(tmp_path: Path, message_id: str) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        answer = await producer.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": message_id})
        assert answer.code in (1, 29)  # RocketMQ 4.9's code, and 5's for a malformed field
        await producer.send(b"plain", UNIQ_KEY="u")
        (plain,) = stored(broker, TOPIC, 1)
        answer = await producer.peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, {"msgId": plain.offset_msg_id})
        assert answer.code == 1 and "not a half message" in (answer.remark or "")
        assert stored(broker, HALF) == []


async def test_immunity_delays_the_first_check_and_does_not_count_as_one(tmp_path: Path) -> None:
    async with transactions_at(tmp_path, transaction_check_max=2) as (broker, producer):
        await producer.hello()
        half = await producer.prepare(b"pay", age_ms=OLD_MS, CHECK_IMMUNITY_TIME_IN_SECONDS="36000")
        behind = await producer.prepare(b"behind", age_ms=OLD_MS)
        for _ in range(4):
            await broker.transaction_checks.round()
        for _ in range(2):
            copy, message, _ = await producer.asked()
            assert message.body == b"behind" and copy.unique_key == behind.unique_key
        assert [message.body for message in stored(broker, DISCARDED)] == [b"behind"]
        last = [each for each in stored(broker, HALF) if each.body == b"pay"][-1]
        assert last.properties["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
        assert "TRANSACTION_CHECK_TIMES" not in last.properties
        # the producer knows the first record only
        assert (await producer.end(half, COMMIT)).code == 0
        assert bodies(broker) == [b"pay"]
        assert broker.transactions.pending == 0
        await broker.transaction_checks.round()
        assert broker.offsets.query(CHECKER, HALF, 0) == broker.store.max_offset(HALF, 0)


@pytest.mark.parametrize(("immunity", "is_asked"), [("5", True), ("x", True), ("-1", True), ("36000", False)])
async def test_immunity_is_in_seconds_and_nonsense_means_the_usual_time(
    tmp_path: Path, immunity: str, is_asked: bool
) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.prepare(b"pay", age_ms=OLD_MS, CHECK_IMMUNITY_TIME_IN_SECONDS=immunity)
        await producer.hello()
        await broker.transaction_checks.round()
        assert broker.transactions.metrics.checks_sent == is_asked


async def test_the_end_of_a_rewritten_record_ends_its_copies_too(tmp_path: Path) -> None:
    """A slow local transaction: the check came first, then the end of the record that the producer knows."""
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.hello()
        half = await producer.prepare(b"pay", age_ms=OLD_MS)
        await broker.transaction_checks.round()
        copy, _, _ = await producer.asked()
        assert (await producer.end(half, COMMIT)).code == 0
        assert (await producer.end(copy, COMMIT, fromTransactionCheck="true")).code == 0
        await broker.transaction_checks.round()
        assert bodies(broker) == [b"pay"]
        assert broker.transactions.metrics.checks_sent == 1
        assert broker.transactions.pending == 0


async def test_a_commit_whose_op_message_was_lost_is_not_repeated(tmp_path: Path) -> None:
    """As after a crash between the two, and as Apache's broker leaves it."""
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.hello()
        half = await producer.prepare(b"pay", age_ms=OLD_MS)
        (waiting,) = stored(broker, HALF)
        committed = StoreMessage(
            TOPIC,
            1,
            b"pay",
            encode_properties(waiting.properties).encode(),
            0,
            8,
            waiting.born_timestamp,
            encode_host(*waiting.born_host),
            broker.store_host,
            0,
            half.physical_offset,
        )
        broker.store.put_message(committed)
        await broker.transaction_checks.round()
        copy, _, _ = await producer.asked()
        assert (await producer.end(copy, COMMIT, fromTransactionCheck="true")).code == 0
        assert bodies(broker) == [b"pay"]
        assert broker.transactions.pending == 0
        assert broker.transactions.metrics.repeated == 1


async def test_a_restarted_broker_knows_what_ended(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        halves = [await producer.prepare(b"%d" % number, age_ms=OLD_MS) for number in range(600)]
        for half in halves[::2]:
            await producer.end(half, COMMIT if half.queue_offset % 4 else ROLLBACK)
        expected = bodies(broker)
    async with transactions_at(tmp_path, transaction_timeout_ms=2 * OLD_MS) as (broker, producer):
        assert broker.transactions.pending == 300
        for half in halves[::2]:
            assert (await producer.end(half, COMMIT)).code == 0
        assert bodies(broker) == expected
        await producer.hello()
        await broker.transaction_checks.round()
        assert broker.transactions.metrics.checks_sent == 0  # too young for this broker
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.hello()
        await broker.transaction_checks.round()
        asked = {(await producer.asked())[1].body for _ in range(300)}
        assert asked == {b"%d" % number for number in range(1, 600, 2)}


async def test_a_store_that_refuses_interrupts_the_round_and_loses_nothing(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        await producer.hello()
        await producer.prepare(b"pay", age_ms=OLD_MS)
        await producer.prepare(b"ancient", age_ms=DAYS_MS)
        broker.store.parts.state.set_flag(RunningFlags.DISK_FULL, True)
        await broker.transaction_checks.round()
        assert broker.offsets.query(CHECKER, HALF, 0) == -1
        broker.store.parts.state.set_flag(RunningFlags.DISK_FULL, False)
        await broker.transaction_checks.round()
        assert (await producer.asked())[1].body == b"pay"
        assert [message.body for message in stored(broker, DISCARDED)] == [b"ancient"]


@pytest.mark.parametrize(
    "properties",
    [
        b"",
        b"REAL_TOPIC\x01orders",
        b"REAL_TOPIC\x01orders\x02REAL_QID\x01-1",
        b"REAL_TOPIC\x01orders\x02REAL_QID\x01" + b"9" * 6000,
        b"REAL_TOPIC\x01" + b"x" * 300 + b"\x02REAL_QID\x010",
        b"REAL_TOPIC\x01orders\x02REAL_QID\x010\x02TRANSACTION_CHECK_TIMES\x01many\x02PGROUP\x01\xff\xfe",
    ],
)
async def test_a_damaged_half_message_harms_no_round(tmp_path: Path, properties: bytes) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        host = broker.store_host
        now_ms = int(time.time() * 1000) - OLD_MS
        broker.store.put_message(StoreMessage(HALF, 0, b"damaged", properties, 0, 0, now_ms, host, host))
        broker.store.put_message(StoreMessage(OP, 0, b"9" * 6000, b"TAGS\x01d", 0, 0, now_ms, host, host))
        EndedHalves.load(broker.store, -1, -1)
        await producer.prepare(b"pay", age_ms=OLD_MS)
        await producer.hello()
        await broker.transaction_checks.round()
        assert (await producer.asked())[1].body == b"pay"


async def test_a_long_round_leaves_the_loop_to_others(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, _):
        text = f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02REAL_TOPIC\x01{TOPIC}\x02REAL_QID\x010".encode()
        host = broker.store_host
        for number in range(5000):
            broker.store.put_message(StoreMessage(HALF, 0, b"%d" % number, text, 0, 0, 1_000_000, host, host))
        turns = 0
        round_ = asyncio.create_task(broker.transaction_checks.round())
        while not round_.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns > 20
        assert broker.transactions.metrics.discarded == 5000


async def test_what_ended_can_be_passed_without_a_round(tmp_path: Path) -> None:
    async with transactions_at(tmp_path) as (broker, producer):
        halves = [await producer.prepare(b"%d" % number, age_ms=OLD_MS) for number in range(5)]
        for half in (halves[0], halves[1], halves[3]):
            await producer.end(half, COMMIT)
        await broker.transaction_checks.pass_ended()
        assert broker.offsets.query(CHECKER, HALF, 0) == 2
        assert broker.offsets.query(CHECKER, OP, 0) == 2
        assert broker.transactions.pending == 2
        assert (await producer.end(halves[0], COMMIT)).code == 0
        assert bodies(broker) == [b"0", b"1", b"3"]


async def test_the_service_checks_each_interval(tmp_path: Path) -> None:
    async with transactions_at(tmp_path, transaction_check_interval_ms=50, transaction_timeout_ms=1) as (_, producer):
        await producer.hello()
        await producer.prepare(b"pay", age_ms=OLD_MS)
        copy, _, _ = await producer.asked()
        again, _, _ = await producer.asked()
        assert again.queue_offset > copy.queue_offset
