"""What rules and the Overview make of automatic failover as it was seen: since when, and not before it is known."""

from __future__ import annotations

import dataclasses

import pytest

from appliance.settings.alert_names import RuleKind
from dashboard.alerts.kinds import KINDS
from dashboard.exporter.exposition import exposition
from dashboard.exporter.page import failover_families
from dashboard.history import series
from dashboard.status.board import Snapshot
from dashboard.status.failover import Failover, failover_problems, looked
from gantrymq.client.admin.failover import FailoverMember, FailoverPause, FailoverStatus

NOW, NAME = 10_000.0, "broker-a"
FINE = FailoverStatus(
    NAME,
    is_automatic=True,
    epoch=4,
    master="a:1",
    in_sync=("a:1", "b:1", "c:1"),
    members=(
        FailoverMember(1, "a:1", in_sync=True, is_master=True),
        FailoverMember(2, "b:1", in_sync=True, is_master=False, has_told=True),
        FailoverMember(3, "c:1", in_sync=True, is_master=False, has_told=True, refusal="its disk is broken"),
    ),
    next_master="b:1",
    in_sync_min=2,
    etcd_ms=20,
)
PAUSED = dataclasses.replace(FINE, next_master="", pause=FailoverPause("ops", "disks", int((NOW - 4000) * 1000)))
ALONE = dataclasses.replace(FINE, next_master="", why_none="member 2: its disk is broken", in_sync=("a:1", "b:1"))
FULL = dataclasses.replace(FINE, etcd_trouble="etcd's database is full", is_etcd_refusing=True)
GROWING = dataclasses.replace(FINE, etcd_trouble="nobody compacts etcd")
SHARED = dataclasses.replace(FINE, shared_stores=("b:1",))
BY_HAND = dataclasses.replace(ALONE, is_automatic=False)
SILENT = FailoverStatus(NAME, unknown="etcd can't be asked: refused", is_automatic=True)


def seen(*told: FailoverStatus | None) -> Failover:
    """Looks ten seconds apart, the last one now."""
    found = None
    for number, each in enumerate(told):
        found = looked(found, NAME, each, "" if each else "no broker answers", NOW - 10 * (len(told) - 1 - number))
    assert found is not None
    return found


def readings(failover: Failover) -> dict[str, float | None]:
    snapshot = Snapshot(NOW, "n:1", None, (), (), None, failovers={NAME: failover})
    kinds = (
        RuleKind.NO_SUCCESSOR, RuleKind.IN_SYNC_SMALL, RuleKind.ETCD_SLOW, RuleKind.FAILOVER_PAUSED, RuleKind.ETCD_FULL,
    )  # fmt: skip
    found = {kind: KINDS[kind].read(snapshot)[NAME] for kind in kinds}
    kept = series.now_and_then(snapshot)
    assert {kind: kept.get(f"{KINDS[kind].series}:{NAME}") for kind in kinds} == found
    return {str(kind): value for kind, value in found.items()}


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ((FINE,), (0.0, 0.0, 0.02, 0.0, 0.0)), ((ALONE, ALONE, ALONE), (20.0, 20.0, 0.02, 0.0, 0.0)),
        ((ALONE, FINE), (0.0, 0.0, 0.02, 0.0, 0.0)), ((PAUSED,), (0.0, 0.0, 0.02, 4000.0, 0.0)),
        ((FINE, SILENT, SILENT), (0.0, 0.0, 20.0, 0.0, 0.0)), ((FINE, None), (0.0, 0.0, 10.0, 0.0, 0.0)),
        ((FULL, GROWING), (0.0, 0.0, 0.02, 0.0, 10.0)), ((FULL, FINE), (0.0, 0.0, 0.02, 0.0, 0.0)),
        ((BY_HAND,), (None, None, None, None, 0.0)), ((SILENT,), (None, None, None, None, None)),
    ],
)  # fmt: skip
def test_each_rule_reads_since_when(
    looks: tuple[FailoverStatus | None, ...], expected: tuple[float | None, ...]
) -> None:
    assert tuple(readings(seen(*looks)).values()) == expected


@pytest.mark.parametrize(
    ("looks", "words"),
    [
        ((FINE,), []),
        ((ALONE,), ["no member could take over"]),
        ((PAUSED,), ["failover is paused"]),
        ((FINE, SILENT), ["etcd does not answer"]),
        ((FULL,), ["etcd refuses every change"]),
        ((GROWING,), ["etcd is never compacted"]),
        ((dataclasses.replace(FULL, is_automatic=False),), ["etcd refuses every change"]),
        ((BY_HAND,), []),
        ((SHARED,), ["the store of b:1 is not on a local disk"]),
        ((dataclasses.replace(SHARED, is_automatic=False),), []),
    ],
)
def test_the_overview_says_what_a_person_has_to_do(looks: tuple[FailoverStatus, ...], words: list[str]) -> None:
    found = failover_problems({NAME: seen(*looks)}, NOW)
    assert len(found) == len(words) and all(word in check.title for word, check in zip(words, found, strict=True))


@pytest.mark.parametrize("told", [FULL, GROWING])
def test_the_alert_of_a_full_etcd_is_as_bad_as_its_check(told: FailoverStatus) -> None:
    snapshot = Snapshot(NOW, "n:1", None, (), (), None, failovers={NAME: seen(told)})
    [check] = failover_problems(snapshot.failovers, NOW)
    assert KINDS[RuleKind.ETCD_FULL].levels(snapshot) == {NAME: check.level}


def test_prometheus_gets_figures_of_what_is_known() -> None:
    page = exposition(failover_families({NAME: seen(FINE)}, NOW))
    assert 'gantry_failover_candidates{broker="broker-a"} 1' in page
    assert 'gantry_failover_in_sync{broker="broker-a"} 3' in page
    assert 'gantry_etcd_answer_seconds{broker="broker-a"} 0.02' in page
    by_hand = exposition(failover_families({NAME: seen(BY_HAND)}, NOW))
    known = [line for line in by_hand.splitlines() if "broker=" in line]
    assert known == ['gantry_etcd_full_seconds{broker="broker-a"} 0']
