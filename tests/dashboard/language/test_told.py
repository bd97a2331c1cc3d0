"""What brokers tell of etcd and of failover is known again on pages: both texts in one test, since they stand in two
packages.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import pytest
from django.utils import translation

from appliance.broker.failover.told import SILENT, UNSURE
from appliance.failover.actions import TakeOver
from appliance.failover.decide import decide
from appliance.failover.own import Doubt
from appliance.failover.view import Level, TermState
from appliance.failover.winning import why_never
from appliance.register.etcd import EtcdClient, Health
from appliance.register.room import CHANGES_KEPT, CORRUPT, LARGE_BYTES, NO_SPACE, trouble_of
from dashboard.language.choice import PLAIN
from dashboard.language.sentences import again
from dashboard.language.told import told_in_words
from tests.appliance.failover.members import NOW, ONE, SLAVE, THREE, viewed


class Etcd:
    """One that keeps every change."""

    def __init__(self, *alarms: str) -> None:
        self._health = Health(CHANGES_KEPT + 1, LARGE_BYTES, frozenset(alarms))

    async def health(self) -> Health:
        return self._health

    async def has_kept(self, key: str, revision: int) -> bool:
        return True


@pytest.mark.parametrize("alarms", [(), (NO_SPACE,), (CORRUPT,)])
async def test_each_trouble_of_etcd_is_said_in_the_language_of_the_page(alarms: tuple[str, ...]) -> None:
    told = (await trouble_of(cast(EtcdClient, cast(Any, Etcd(*alarms))), "/key")).text
    with translation.override(PLAIN):
        known = told_in_words(told)
        assert known == told
    with translation.override("zh-hans"):
        chinese = again(known)
    assert chinese != told and "etcd" in chinese


@pytest.mark.parametrize(
    ("told", "values"),
    [
        ("was killed by SIGKILL", ["SIGKILL"]),
        ("ended with exit code -9", ["-9"]),
        ("did not answer for 12.5 s", ["12.5"]),
        (
            "broker-a: its log takes 1.2 GiB now and will take up to 3 GiB at its retention of 48 h; the disk has "
            "5.0 GiB for it until it is 85 % full, so messages may be deleted after about 30 h.",
            ["broker-a", "1.2 GiB", "3 GiB", "48", "5.0 GiB", "85 %", "30"],
        ),
        (
            "b: 1,024 bytes of the log at physical offset 77 are damaged and not counted; they held messages stored "
            "from 2026-11-21 07:30 to 2026-11-21 08:00 UTC",
            ["1,024 bytes", "77", "2026-11-21 07:30", "2026-11-21 08:00"],
        ),
        ("unclean switchover, 1,234 bytes accepted", ["1,234"]),
        ("member 2 was the master, and has restarted", ["2"]),
        ("ops at lunch has paused failover: disks are replaced", ["ops at lunch", "disks are replaced"]),
    ],
)
def test_a_sentence_is_known_by_its_text_and_keeps_its_values(told: str, values: list[str]) -> None:
    with translation.override(PLAIN):
        assert told_in_words(told) == told
    with translation.override("zh-hans"):
        chinese = told_in_words(told)
    assert chinese != told and all(value in chinese for value in values)


FROZEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"group": "other"}, {}),
    ({"ids": {}}, {}),
    ({"beat": None}, {"id": 0}),
    ({"cluster_id": 0xAB}, {}),
    ({}, {"highest": 6}),
    ({}, {"is_automatic": False}),
    ({}, {"is_disk_healthy": False}),
    ({}, {"has_ticked": False}),
    *(({}, {"boot": "b2", "doubt": doubt}) for doubt in Doubt),
    ({}, {"is_twice": True}),
    ({"of_level": Level.LOCAL}, {}),
    ({"of_in_sync": frozenset({ONE, THREE})}, {}),
    ({"of_in_sync": frozenset()}, {}),
    ({"beat": None}, {}),
    ({"beat": None, "of_state": TermState.OPENING}, {}),
]


@pytest.mark.parametrize(("view", "member"), FROZEN)
def test_each_reason_not_to_take_over_is_said_in_the_language_of_the_page(
    view: dict[str, Any], member: dict[str, Any]
) -> None:
    _is_said(why_never(viewed(**view), dataclasses.replace(SLAVE, **member)))


def test_the_reason_of_a_takeover_is_said_in_the_language_of_the_page() -> None:
    (action,) = decide(viewed(changed=NOW - 5.0), SLAVE, NOW)
    assert isinstance(action, TakeOver)
    assert "5.0" in _is_said(action.reason)


def test_reasons_of_several_members_stand_side_by_side() -> None:
    told = f"member 2 (10.0.0.2:10911): the disk of member 2 does not write; member 3 (address unknown): {SILENT}"
    chinese = _is_said(told)
    assert "member" not in chinese and "10.0.0.2:10911" in chinese and "\uff1b" in chinese


def test_what_is_not_known_yet_is_said_in_the_language_of_the_page() -> None:
    _is_said(f"member 2 (10.0.0.2:10911): {UNSURE}")


def test_thirty_members_are_said_each_in_the_language_of_the_page() -> None:
    whys = ["ops has paused failover: disks; lunch", *["the disk of member 2 does not write"] * 29]
    reasons = [f"member {number} (10.0.0.{number}:10911): {why}" for number, why in enumerate(whys, 1)]
    chinese = _is_said("; ".join(reasons))
    with translation.override("zh-hans"):
        assert chinese == "；".join(map(told_in_words, reasons))
    assert "member" not in chinese and "disks; lunch" in chinese


def test_a_text_that_is_not_known_stays_whole() -> None:
    with translation.override("zh-hans"):
        assert told_in_words("one thing; another: a third") == "one thing; another: a third"


def _is_said(told: str) -> str:
    """The Chinese of what is known and not English."""
    with translation.override(PLAIN):
        known = told_in_words(told)
        assert told and known == told
    with translation.override("zh-hans"):
        chinese = str(again(known))
    assert chinese != told
    return chinese
