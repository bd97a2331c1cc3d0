"""Trails of brokers and name servers: each line is taken over once, whatever happened to the file meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError

from appliance.audit.routes import AUDITED
from appliance.audit.trail_file import NAME, TrailFile, older_part
from dashboard.audit import broker_trails
from dashboard.audit.broker_trails import ACTIONS, TrailReader
from dashboard.audit.chain import check
from dashboard.models.audit import AuditEntry, Result
from gantrymq.remoting.codes import RequestCode

pytestmark = pytest.mark.django_db


def line(number: int, **others: Any) -> bytes:
    entry = {"at": 1_780_000_000_000 + number, "code": 215, "name": "DELETE_TOPIC_IN_BROKER", "account": "ops",
             "address": "10.0.0.7:4711", "fields": {"topic": f"t{number}"}, "result": 0, "remark": ""}  # fmt: skip
    return json.dumps(entry | others).encode()


def targets() -> list[str]:
    return list(AuditEntry.objects.order_by("number").values_list("target", flat=True))


def read(folder: Path) -> None:
    """With a reader of its own, as after a restart."""
    reader = TrailReader({folder / NAME: "broker-a"})
    while reader.read():
        pass


def test_each_code_has_its_words() -> None:
    assert set(ACTIONS) == {RequestCode(code).name for code in AUDITED}


def test_lines_are_taken_over_once(tmp_path: Path) -> None:
    trail = TrailFile(tmp_path / NAME)
    read(tmp_path)
    for number in range(3):
        trail.append(line(number))
        read(tmp_path)
        read(tmp_path)
    assert targets() == ["t0", "t1", "t2"]
    entry = AuditEntry.objects.get(number=1)
    assert (entry.who, entry.way, entry.address, entry.action) == ("ops", "remoting", "10.0.0.7", "topic deleted")
    assert entry.at.isoformat() == "2026-05-28T20:26:40+00:00"
    assert check().broken_at is None


def test_a_half_line_waits_for_its_rest(tmp_path: Path) -> None:
    whole = b'{"part": "x"}\n' + line(0) + b"\n"
    (tmp_path / NAME).write_bytes(whole + line(1)[:20])
    read(tmp_path)
    assert targets() == ["t0"]
    (tmp_path / NAME).write_bytes(whole + line(1) + b"\n")
    read(tmp_path)
    assert targets() == ["t0", "t1"]


def test_a_new_part_begins_and_the_old_one_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_trails, "LINES_MAX", 3)  # the first line of a part counts
    trail = TrailFile(tmp_path / NAME, part_bytes_max=29 + 5 * (len(line(0)) + 1))
    for number in range(4):
        trail.append(line(number))
    TrailReader({tmp_path / NAME: "broker-a"}).read()
    assert targets() == ["t0", "t1"]
    for number in range(4, 8):
        trail.append(line(number))
    assert older_part(tmp_path / NAME).exists()
    read(tmp_path)
    assert targets() == [f"t{number}" for number in range(8)]


def test_a_part_that_went_unread_is_told_of(tmp_path: Path) -> None:
    trail = TrailFile(tmp_path / NAME, part_bytes_max=29 + 2 * (len(line(0)) + 1))
    trail.append(line(0))
    read(tmp_path)
    for number in range(1, 7):
        trail.append(line(number))
    read(tmp_path)
    assert targets() == ["t0", "broker-a", "t4", "t5", "t6"]
    assert AuditEntry.objects.get(number=2).action == "entries missed"


@pytest.mark.parametrize("damaged", [b"no JSON", b"{}", b"[1]", b'{"at": "x"}', b"\xff\xfe"])
def test_a_line_that_can_not_be_read_is_told_of_and_ends_nothing(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / NAME).write_bytes(b'{"part": "x"}\n' + damaged + b"\n" + line(1) + b"\n")
    read(tmp_path)
    first, second = AuditEntry.objects.order_by("number")
    assert (first.result, second.target) == (Result.FAILED, "t1")


def test_refusals_and_faults_are_told_apart(tmp_path: Path) -> None:
    trail = TrailFile(tmp_path / NAME)
    for number, code in enumerate((0, 16, 1, -1)):
        trail.append(line(number, result=code, remark="why"))
    read(tmp_path)
    found = list(AuditEntry.objects.order_by("number").values_list("result", "told"))
    assert found == [("done", ""), ("refused", "why"), ("failed", "why"), ("failed", "why")]


def test_a_database_that_fails_loses_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TrailFile(tmp_path / NAME).append(line(0))

    def fail(changes: object) -> None:
        raise DatabaseError("locked")

    with monkeypatch.context() as broken, pytest.raises(DatabaseError):
        broken.setattr(broker_trails, "append", fail)
        read(tmp_path)
    read(tmp_path)
    assert targets() == ["t0"]
