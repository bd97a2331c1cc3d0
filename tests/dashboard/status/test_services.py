"""What brokers say of their services: read, shown, and judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from dashboard.cluster.broker_requests import BrokerCalls
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef
from dashboard.exporter.page import page_of
from dashboard.live.sampler import Sampler, read_facts
from dashboard.overview.schemas import ClusterOut
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.metrics import overview_metrics
from dashboard.status.services import Services
from dashboard.status.verdict import Level, judge
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences
from tests.dashboard.conftest import Client
from tests.dashboard.exporter.page_reader import read_page

BROKER = BrokerRef("broker-a", "127.0.0.1:10911", "DefaultCluster")
NARROW_SPACE = "\u202f"  # between a number and its unit
NASTY = "<script>alert('x')</script>"
HEALTHY = {
    "bootTimestamp": "1", "nameServersRegistered": "1/1", "tablesNotSaved": "none", "timerBehindMs": "0",
    "suspendedGroups": "0", "subscriptionDisagreements": "0", "sendThreadPoolQueueRejected": "5",
    "sendThreadPoolQueueExpired": "0",
}  # fmt: skip


def slaves(*, in_sync: bool, behind_bytes: int = 0) -> str:
    """One slave, as a master tells of it."""
    slave = SlaveDifference("10.1.0.7:4000", behind_bytes, 12.0 if behind_bytes else 0.0, in_sync, 2048)
    return SlaveDifferences([slave]).to_json().decode()


def facts_of(now: float, changes: Mapping[str, str] | None = None, before: BrokerFacts | None = None) -> BrokerFacts:
    return read_facts(BROKER, HEALTHY | dict(changes or {}), now, before)


def snapshot_of(facts: BrokerFacts) -> Snapshot:
    return Snapshot(facts.at, "ns", None, (BrokerState(facts.name, facts.address, facts),), (), None)


def problems_of(facts: BrokerFacts) -> list[tuple[Level, str, str]]:
    return [(problem.level, problem.title, problem.evidence) for problem in judge(snapshot_of(facts)).problems]


@pytest.mark.parametrize(
    ("changes", "level", "title", "evidence"),
    [
        ({"tablesNotSaved": "topics offsets"}, Level.BAD, "save its tables", "topics, offsets"),
        ({"nameServersRegistered": "0/2"}, Level.BAD, "not registered with any", "0 of 2"),
        ({"nameServersRegistered": "1/2"}, Level.WARN, "not registered with every", "1 of 2"),
        (
            {"messagesDamaged": "3", "messagesDamagedLast": "T-0 queue offset 100 physical offset 77000"},
            Level.BAD,
            "damaged messages on its disk",
            "3 found since its start, the last at T-0 queue offset 100 physical offset 77000",
        ),
        ({"timerBehindMs": "9000", "timerPending": "7"}, Level.WARN, "delayed messages late", "7 wait"),
        (
            {"suspendedGroups": "2", "suspendedGroupNames": "slow,lazy"},
            Level.WARN,
            "suspended slow consumer",
            "slow, lazy",
        ),
        (
            {"outOfFilesSecondsAgo": "3", "connectionsRefusedForFiles": "41", "openFilesMax": "300"},
            Level.BAD,
            "too few files left",
            "41 rejected since its start, the last 3 s ago; it can have 300 files",
        ),
        (
            {"settingsRefused": "2", "settingsRefusedFrom": "198.51.100.7:40000", "settingsRefusedSecondsAgo": "90"},
            Level.WARN,
            "change settings that no request can change",
            "2 requests rejected, the last from 198.51.100.7:40000",
        ),
        (
            {"brokerRole": "ASYNC_MASTER", "slaveDifferences": slaves(in_sync=False, behind_bytes=1 << 30)},
            Level.WARN,
            "broker-a: slaves are far behind",
            "1 of 1: 10.1.0.7:4000 is 1.0 GiB and 12 s behind its master",
        ),
        (
            {"brokerRole": "ASYNC_MASTER", "slaveDifferences": slaves(in_sync=True), "slavesGone": "10.1.0.8 61"},
            Level.WARN,
            "A slave of broker-a is disconnected",
            "10.1.0.8 1 min ago; 1 connected",
        ),
        (
            {"brokerRole": "SYNC_MASTER", "slaveDifferences": "{}", "slavesGone": "10.1.0.8 3"},
            Level.BAD,
            "A slave of broker-a is disconnected",
            "none connected",
        ),
        ({"topicsNotShared": "3"}, Level.WARN, "could not create topics", "3 topics were created"),
        (
            {"subscriptionDisagreements": "7", "subscriptionDisagreementGroups": "a,b,c,d,e,f,g"},
            Level.WARN,
            "Members of consumer groups disagree",
            "a, b, c, d, e and 2 more",
        ),
    ],
)
def test_a_figure_that_means_trouble_is_a_problem_with_evidence(
    changes: dict[str, str], level: Level, title: str, evidence: str
) -> None:
    [(found_level, found_title, found_evidence)] = problems_of(facts_of(100.0, changes))
    assert found_level is level
    assert title in found_title and evidence in found_evidence.replace(NARROW_SPACE, " ")


ATTACK = {"settingsRefused": "2", "settingsRefusedFrom": "198.51.100.7:1", "settingsRefusedSecondsAgo": "3601"}


@pytest.mark.parametrize(
    "changes",
    [{}, ATTACK, *({"outOfFilesSecondsAgo": ago, "connectionsRefusedForFiles": "41"} for ago in ("never", "61"))],
)
def test_what_is_well_or_long_over_is_no_problem(changes: dict[str, str]) -> None:
    assert problems_of(facts_of(100.0, changes)) == []


def test_a_lane_that_refused_something_is_named_for_a_minute() -> None:
    first = facts_of(100.0)
    assert problems_of(first) == [], "what was refused before anybody looked is history"
    second = facts_of(101.0, {"sendThreadPoolQueueRejected": "9"}, first)
    [(_, title, evidence)] = problems_of(second)
    assert title == "broker-a rejects requests" and "send lane: 4 rejected" in evidence
    later = facts_of(150.0, {"sendThreadPoolQueueRejected": "9"}, second)
    assert problems_of(later), "still in sight"
    assert problems_of(facts_of(170.0, {"sendThreadPoolQueueRejected": "9"}, later)) == []


def test_a_restart_makes_no_refusal() -> None:
    before = facts_of(100.0)
    after = facts_of(101.0, {"bootTimestamp": "2", "sendThreadPoolQueueRejected": "0"}, before)
    assert problems_of(after) == []


@pytest.mark.parametrize("text", ["", "x", "1", "/", "1/x", NASTY])
def test_odd_texts_are_unknown_and_no_problem(text: str) -> None:
    facts = facts_of(100.0, {"nameServersRegistered": text, "timerBehindMs": text, "suspendedGroups": "x"})
    assert problems_of(facts) == []
    assert overview_metrics(snapshot_of(facts)).values["broker.broker-a.namesrv"].text == "—"


def test_a_broker_that_tells_none_of_it_shows_nothing_made_up() -> None:
    facts = read_facts(BROKER, {"bootTimestamp": "1"}, 100.0, None)
    assert facts.services == Services()
    metrics = overview_metrics(snapshot_of(facts)).values
    for name in ("connections", "held", "rejected", "timer.pending", "tls", "fast_path", "saved", "lanes.side"):
        assert metrics[f"broker.broker-a.{name}"].text == "—", name


async def test_a_brokers_page_shows_each_lane_and_the_services_of_a_real_one(log_in: Client, gateway: Gateway) -> None:
    sampler = Sampler(gateway)
    snapshot = await sampler.sample()
    [broker] = snapshot.brokers
    assert broker.facts is not None
    assert len(broker.facts.lanes) == 9
    services = broker.facts.services
    assert (services.name_servers_known, services.name_servers_all) == (1, 1)
    assert services.connections and services.tls == "disabled" and len(services.lanes) == 9
    assert services.fast_path.startswith(("on", "off ("))
    page = (await (await log_in("reader")).get(f"/broker/{broker.name}")).content.decode()
    for name in ("namesrv", "connections", "held", "timer.pending", "tx.pending", "saved", "fast_path", "lanes.side"):
        assert f'data-live="broker.{broker.name}.{name}"' in page, name
    assert "5 more lanes" in page


async def test_names_of_groups_in_a_problem_are_text(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., object] = BrokerCalls.runtime_info

    async def with_a_nasty_group(self: BrokerCalls, broker: BrokerRef, **options: float) -> dict[str, str]:
        info: dict[str, str] = await real(self, broker, **options)  # type: ignore[misc]
        return info | {"suspendedGroups": "1", "suspendedGroupNames": NASTY, "settingsIgnored": NASTY}

    monkeypatch.setattr(BrokerCalls, "runtime_info", with_a_nasty_group)
    await Sampler(gateway).sample()
    page = (await (await log_in("reader")).get("/")).content.decode()
    assert NASTY not in page and "&lt;script&gt;" in page


def test_the_shape_does_not_change_with_numbers() -> None:
    facts = facts_of(100.0)
    other = replace(facts, services=replace(facts.services, connections=99, held_pulls=5))
    assert overview_metrics(snapshot_of(facts)).shape == overview_metrics(snapshot_of(other)).shape


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "—"),
        ({"brokerRole": "ASYNC_MASTER", "slaveDifferences": "{}"}, "none"),
        ({"brokerRole": "ASYNC_MASTER", "slaveDifferences": "no json"}, "none"),
        ({"brokerRole": "SYNC_MASTER", "slaveDifferences": slaves(in_sync=True)}, "1 of 1 in sync"),
    ],
)
def test_the_card_tells_of_slaves(changes: dict[str, str], shown: str) -> None:
    metrics = overview_metrics(snapshot_of(facts_of(100.0, changes)))
    assert metrics.values["broker.broker-a.slaves"].text == shown


def test_what_reads_found_damaged_stands_in_rest_and_in_the_figures() -> None:
    changes = {"messagesDamaged": "3", "messagesDamagedLast": "T-0 queue offset 100 physical offset 77000"}
    snapshot = snapshot_of(facts_of(100.0, changes))
    answer = ClusterOut.of(snapshot, judge(snapshot))
    place = "3 found since its start, the last at T-0 queue offset 100 physical offset 77000"
    assert answer.problems == [f"{BROKER.name} has damaged messages on its disk: {place}"]
    [(labels, value)] = read_page(page_of(snapshot))["gantry_messages_damaged_total"]
    assert (labels["broker"], value) == (BROKER.name, 3.0)
