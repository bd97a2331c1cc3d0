"""The checker itself: a history with nothing wrong has no findings, and each planted fault has its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.faults.kit.numbered import put
from tests.faults.replication.history import Answer, Delivery, EpochRow, Log, QueueKey, Send, Stored, check
from tests.faults.replication.logs import BadRecord, read_log
from tests.store.conftest import opened, small_config

QUEUE = QueueKey("Copied", 0)
ONE, TWO = "10.0.0.1:10911", "10.0.0.2:10911"
SIZE = 10


def body(number: int) -> bytes:
    return b"body%06d" % number


def send(number: int, member: str = ONE, answer: Answer = Answer.ACKNOWLEDGED) -> Send:
    return Send("s", number, body(number), answer, member, QUEUE, number, number * SIZE)


def log(member: str, numbers: list[int], *epochs: EpochRow) -> Log:
    data = b"".join(map(body, numbers))
    stored = [Stored(at * SIZE, QUEUE, at, body(number)) for at, number in enumerate(numbers)]
    return Log(member, 0, data, stored, epochs or (EpochRow(1, 0, "a"),))


SENDS = [send(number) for number in range(8)]
WHOLE = log(ONE, list(range(8)))


def kinds(sends: list[Send], *logs: Log) -> set[str]:
    return {finding.kind for finding in check(sends, logs, logs[0].member)}


def test_a_history_in_which_all_is_well_has_no_findings() -> None:
    unknown = send(8, answer=Answer.UNKNOWN)
    refused = send(9, answer=Answer.REFUSED)
    assert kinds([*SENDS, unknown, refused], WHOLE, log(TWO, list(range(6)))) == set()
    later = EpochRow(2, 60, "b")
    assert kinds(SENDS, log(ONE, [*range(8)], EpochRow(1, 0, "a"), later), log(TWO, [*range(8)])) == set()


@pytest.mark.parametrize(
    ("kind", "sends", "logs"),
    [
        ("lost", SENDS, [log(ONE, list(range(7)))]),
        ("refused_but_stored", [*SENDS[:7], send(7, answer=Answer.REFUSED)], [WHOLE]),
        ("stored_twice", SENDS, [log(ONE, [*range(8), 3])]),
        ("moved", SENDS, [log(ONE, [0, 1, 2, 3, 4, 5, 7, 6])]),
        ("order", SENDS, [log(ONE, [0, 1, 2, 3, 4, 5, 7, 6])]),
        ("queue_offset_reused", SENDS, [log(ONE, [0, 1, 2, 3, 4, 5, 6, 99])]),
        ("two_masters", [*SENDS, dataclasses.replace(send(7, TWO), body=body(77))], [WHOLE]),
        ("two_masters", [*SENDS[:4], *(send(number, TWO) for number in range(4, 8))], [WHOLE, log(TWO, [*range(8)])]),
        ("unequal", SENDS, [WHOLE, log(TWO, [0, 1, 99, 3])]),
        ("no_joint", SENDS, [WHOLE, log(TWO, [*range(8)], EpochRow(1, 0, "z"))]),
    ],
)
def test_each_planted_fault_is_found(kind: str, sends: list[Send], logs: list[Log]) -> None:
    assert kind in kinds(sends, *logs)


def test_what_was_delivered_has_to_stay_where_it_was_delivered() -> None:
    given = [Delivery(QUEUE, number, body(number)) for number in range(8)]
    assert check(SENDS, [WHOLE], ONE, [*given, given[3]]) == [], "a message may be delivered again"
    for wrong in (Delivery(QUEUE, 8, body(8)), Delivery(QUEUE, 7, body(6)), Delivery(QUEUE, 7, body(9))):
        assert [found.kind for found in check(SENDS, [WHOLE], ONE, [*given, wrong])] == ["delivered_but_gone"]


def test_two_epochs_of_one_number_are_one_log_up_to_where_they_part() -> None:
    first = EpochRow(1, 0, "a")
    mine = log(ONE, [*range(8)], first, EpochRow(2, 40, "b"))
    theirs = log(TWO, [*range(4), 91, 92], first, EpochRow(2, 40, "c"))
    assert kinds(SENDS, mine, theirs) == set()
    assert kinds(SENDS, log(ONE, [*range(8)], first, EpochRow(2, 60, "b")), theirs) == set()


def test_a_log_is_read_as_the_store_wrote_it(tmp_path: Path) -> None:
    config = small_config(tmp_path / "store")
    store = opened(config)
    for number in range(30):
        put(store, number)
    end = store.max_physical_offset
    store.close()
    found = read_log(ONE, tmp_path / "store")
    assert (found.begin, found.end, len(found.stored)) == (0, end, 30)
    assert [stored.queue_offset for stored in found.stored] == list(range(30))
    first = tmp_path / "store" / "commitlog" / ("0" * 20)
    data = bytearray(first.read_bytes())
    data[4] ^= 1
    first.write_bytes(data)
    with pytest.raises(BadRecord):
        read_log(ONE, tmp_path / "store")
