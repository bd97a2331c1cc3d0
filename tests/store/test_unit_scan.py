"""store/unit_scan.py: what one read takes, passes over, and where it ends. Values only: no store, no disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gantrymq.message import record
from gantrymq.message.model import MessageExt
from store import GetMessageStatus, TagFilter
from store.queues.consume_queue import FILLER_SIZE
from store.queues.consume_queue_ext import ADDRESS_BASE, ConsumeQueueExt, ExtUnit
from store.unit_scan import Limits, Stop, Unit, UnitScan

FILE_BYTES = 1000
ROOMY = Limits(1 << 40, 1000, 1 << 30, 1000, 1 << 30)
FILLER: Unit = (0, FILLER_SIZE, 0)
A = TagFilter(frozenset({65}))
NO_MATCH, REMOVING = GetMessageStatus.NO_MATCHED_MESSAGE, GetMessageStatus.MESSAGE_WAS_REMOVING


@dataclass
class Files:
    """A log of files with 1000 bytes each; position n of it holds the byte n % 251."""

    numbers: tuple[int, ...] = (0, 1, 2)
    content: dict[int, bytes] = field(default_factory=dict)

    def find(self, physical_offset: int) -> Any:
        number = physical_offset // FILE_BYTES
        if number not in self.numbers:
            return None
        base = number * FILE_BYTES
        data = self.content.get(number) or bytes(at % 251 for at in range(base, base + FILE_BYTES))
        return SimpleNamespace(base=base, end=base + FILE_BYTES, view=memoryview(data))

    def next_start(self, physical_offset: int) -> int:
        return (physical_offset // FILE_BYTES + 1) * FILE_BYTES


def scanned(
    units: list[Unit], *, files: Files | None = None, log_end: int = 3000, limits: Limits = ROOMY, **asked: Any
) -> tuple[UnitScan, Stop | None, int]:
    """Show units to a new scan; return it, why it stopped, and how many units it decided about."""
    scan = UnitScan(files or Files(), log_end, limits, asked.pop("count_max", 32), asked.pop("wanted", None), **asked)
    for index, unit in enumerate(units):
        stop = scan.take(unit, index)
        if stop is not None:
            return scan, stop, index
    return scan, None, len(units)


def in_a_row(count: int, size: int = 100, start: int = 0, code: int = 65) -> list[Unit]:
    return [(start + number * size, size, code) for number in range(count)]


def taken(scan: UnitScan) -> list[tuple[int, int]]:
    """Each view as where it begins (below 251) and its length."""
    return [(view[0], len(view)) for view in scan.close()]


def test_adjacent_records_share_a_view_and_others_have_their_own() -> None:
    scan, stop, decided = scanned([*in_a_row(2), (240, 10, 65), (250, 50, 65)])
    assert (stop, decided, scan.count, scan.size_bytes) == (None, 4, 4, 260)
    assert taken(scan) == [(0, 200), (240, 60)]


def test_a_view_ends_with_its_file() -> None:
    scan, _stop, _decided = scanned(in_a_row(3, size=100, start=900))
    assert taken(scan) == [(900 % 251, 100), (1000 % 251, 200)]


def test_a_first_record_at_zero_behind_one_further_on_has_its_own_view() -> None:
    scan, _stop, _decided = scanned([(100, 50, 65), (0, 50, 65)])
    assert taken(scan) == [(100, 50), (0, 50)]


@pytest.mark.parametrize(("count_max", "decided"), [(1, 1), (2, 2), (5, 5), (6, 5)])
def test_a_full_answer_ends_before_the_next_unit(count_max: int, decided: int) -> None:
    scan, stop, done = scanned(in_a_row(5), count_max=count_max)
    assert (scan.count, done) == (decided, decided)
    assert stop is (Stop.FULL if decided < 5 else None)


def test_a_full_answer_ends_before_a_unit_that_nobody_wants_too() -> None:
    units = [*in_a_row(2), (200, 100, 66), *in_a_row(1, start=300)]
    scan, stop, decided = scanned(units, count_max=2, wanted=A)
    assert (scan.count, stop, decided) == (2, Stop.FULL, 2)


def test_a_filler_behind_a_full_answer_is_passed_over() -> None:
    scan, stop, decided = scanned([*in_a_row(1), FILLER, *in_a_row(1, start=100)], count_max=1)
    assert (scan.count, stop, decided) == (1, Stop.FULL, 2)


def test_what_is_not_committed_ends_the_queue() -> None:
    scan, stop, decided = scanned(in_a_row(5), log_end=300)
    assert (scan.count, stop, decided) == (3, Stop.LOG_END, 3)


def test_a_record_that_the_log_does_not_have_whole_counts_as_deleted() -> None:
    scan, stop, _decided = scanned(in_a_row(3), log_end=250)
    assert (scan.count, stop, scan.why_empty) == (2, None, REMOVING)


def test_a_record_that_is_not_shown_whole_yet_ends_the_queue() -> None:
    scan, stop, decided = scanned(in_a_row(3), log_end=250, written_end=300)
    assert (scan.count, stop, decided) == (2, Stop.LOG_END, 2)


def test_a_doubted_unit_whose_record_is_not_shown_yet_ends_the_queue() -> None:
    scan = UnitScan(Files(), 200, ROOMY, 32, None, written_end=300)
    scan.prove = lambda unit, index: unit
    assert [scan.take(unit, index) for index, unit in enumerate(in_a_row(3))] == [None, None, Stop.LOG_END]


def test_the_rest_of_a_deleted_file_is_passed_over_unread() -> None:
    files = Files((1, 2))
    scan, stop, decided = scanned([*in_a_row(9), *in_a_row(2, start=1000)], files=files)
    assert (scan.count, stop, decided) == (2, None, 11)
    assert taken(scan) == [(1000 % 251, 200)]


@pytest.mark.parametrize(
    ("units", "why"),
    [
        ([(0, 100, 66)], NO_MATCH),
        ([(0, 100, 65)], REMOVING),
        ([(0, 100, 65), (1000, 100, 66)], NO_MATCH),
        ([(1000, 100, 66), (3000, 100, 65)], REMOVING),
        ([FILLER], NO_MATCH),
    ],
)
def test_the_last_reason_for_nothing_is_kept(units: list[Unit], why: GetMessageStatus) -> None:
    scan, _stop, _decided = scanned(units, files=Files((1,)), log_end=9000, wanted=A)
    assert (scan.count, scan.why_empty, scan.close()) == (0, why, [])


def extension(**codes: int) -> ConsumeQueueExt:
    """n0=65: address ADDRESS_BASE + 0 stands for code 65. Addresses not named are lost."""
    found = {ADDRESS_BASE + int(name[1:]): ExtUnit(20, code, 0, b"") for name, code in codes.items()}
    return cast(ConsumeQueueExt, SimpleNamespace(unit=found.get))


def test_an_address_stands_for_its_code_and_a_lost_one_rules_nothing_out() -> None:
    units = [(at * 100, 100, ADDRESS_BASE + at) for at in range(3)]
    scan, _stop, _decided = scanned(units, wanted=A, ext=extension(n0=65, n1=66))
    assert taken(scan) == [(0, 100), (200, 100)]


@dataclass
class Asked:
    """A filter that looks into records: those whose properties are wanted match."""

    wanted: bytes
    records_max: int = 2
    tags_codes: None = None
    looks: int = 0

    def may_match(self, extended: ExtUnit) -> bool:
        return extended.tags_code == 65

    def matches(self, properties: bytes) -> bool:
        self.looks += 1
        return self.wanted in properties


def records(*tags: str) -> tuple[Files, list[Unit]]:
    """A log that starts with messages of these tags."""
    log, units = b"", []
    for tag in tags:
        local = ("127.0.0.1", 10911)
        data = record.encode_record(
            MessageExt("T", b"x", 0, {"TAGS": tag}, 0, 0, len(log), 0, 0, 0, local, 0, local, 0, 0, 0)
        )
        units.append((len(log), len(data), 0))
        log += data
    return Files(content={0: log.ljust(FILE_BYTES, b"\0")}), units


def test_a_filter_looks_into_no_more_records_than_it_may() -> None:
    files, units = records("no", "yes", "yes")
    wanted = Asked(b"yes", records_max=2)
    scan, stop, decided = scanned(units, files=files, wanted=wanted)
    assert (scan.count, stop, decided, wanted.looks) == (1, Stop.FULL, 2, 2)


def test_the_extension_saves_looking_into_a_record() -> None:
    files, units = records("yes", "yes")
    wanted = Asked(b"yes")
    addressed = [(at, size, ADDRESS_BASE + number) for number, (at, size, _code) in enumerate(units)]
    scan, stop, decided = scanned(addressed, files=files, wanted=wanted, ext=extension(n0=66))
    assert (scan.count, stop, decided, wanted.looks) == (1, None, 2, 1)


def test_a_damaged_record_goes_to_the_client_who_can_tell() -> None:
    files, ((at, size, code),) = records("no")
    scan, _stop, _decided = scanned([(at, size - 1, code)], files=files, wanted=Asked(b"yes"))
    assert scan.count == 1


@pytest.mark.parametrize("answer", [None, FILLER, (500, 100, 65)])
def test_a_doubted_unit_is_proved_before_it_is_taken(answer: Unit | None) -> None:
    scan = UnitScan(Files(), 3000, ROOMY, 32, None)
    asked: list[tuple[Unit, int]] = []

    def prove(unit: Unit, index: int) -> Unit | None:
        asked.append((unit, index))
        return answer

    scan.prove = prove
    stop = scan.take((9_000_000, 100, 65), 7)
    assert asked == [((9_000_000, 100, 65), 7)], "it may name any place, also behind the log's end"
    assert stop is (Stop.REPAIR if answer is None else None)
    assert taken(scan) == ([(500 % 251, 100)] if answer not in (None, FILLER) else [])


def test_units_ruled_out_by_their_code_need_no_proof() -> None:
    scan = UnitScan(Files(), 3000, ROOMY, 32, A)
    scan.prove = lambda unit, index: pytest.fail("asked for a proof")
    assert scan.take((0, 100, 66), 0) is None
