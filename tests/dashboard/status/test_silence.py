"""A host that is away, or a process that has ended, is one line, however many brokers it makes silent."""

from __future__ import annotations

from dataclasses import replace

from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.check import Check, Level
from dashboard.status.processes import ProcessFacts
from dashboard.status.verdict import checked

NOW = 10_000.0


def silent(name: str, address: str, broker_id: int = 0, silent_s: float = 60.0) -> BrokerState:
    facts = BrokerFacts(name, address, NOW - silent_s)
    return BrokerState(name, address, facts, "no answer in time", NOW - silent_s, broker_id)


def process(name: str, state: str, address: str) -> ProcessFacts:
    return ProcessFacts(name, "broker", None, state, 3, None, address, None, None, NOW)


def found(*brokers: BrokerState, processes: tuple[ProcessFacts, ...] = ()) -> list[Check]:
    return checked(Snapshot(NOW, "n", None, brokers, processes, None))


def test_silent_brokers_of_one_host_are_one_line() -> None:
    away = silent("b", "h:1"), silent("d", "h:2"), silent("c", "i:1")
    host, other = found(*away)
    assert (host.title, host.identity, host.link) == ("Brokers on h do not answer", "brokers on h", "/brokers")
    assert host.level is Level.BAD and host.about == ("b", "d")
    assert "b: no answer in time" in host.evidence and "d: no answer in time" in host.evidence
    assert other.title == "c does not answer"


def test_a_host_with_slaves_only_is_as_bad_as_its_slaves() -> None:
    masters = (BrokerState(name, f"{name}:1", BrokerFacts(name, f"{name}:1", NOW)) for name in "ab")
    [host] = found(*masters, silent("a:1", "h:1", 1), silent("b:1", "h:2", 1))
    assert host.level is Level.WARN
    [late] = found(silent("a", "h:1", silent_s=2.5), silent("b", "h:2", silent_s=2.5))
    assert late.level is Level.WARN, "one answer that came late is no alarm"


def test_a_broker_whose_process_is_restarting_is_one_line() -> None:
    restarting = process("broker-a", "restarting", "h:1"), process("broker-b", "crash loop", "h:2")
    [line, loop] = found(silent("broker-a", "h:1"), processes=restarting)
    assert (line.title, loop.title) == ("broker-a does not answer", "Process broker-b is in a crash loop")
    assert "Process broker-a is restarting" in line.evidence
    [both] = found(silent("broker-a", "h:1"), silent("broker-b", "h:2"), processes=restarting)
    assert "broker-a is restarting" in both.evidence and "broker-b is in a crash loop" in both.evidence


def test_a_process_that_stands_still_keeps_its_own_line() -> None:
    """It says what to do."""
    stopped = replace(process("broker-a", "running", "h:1"), pid=7, is_suspended=True)
    titles = [one.title for one in found(silent("broker-a", "h:1"), processes=(stopped,))]
    assert sorted(titles) == ["Process broker-a is stopped by a signal", "broker-a does not answer"]


def test_a_process_is_told_while_its_broker_still_counts_as_answering() -> None:
    [line] = found(silent("broker-a", "h:1", silent_s=1.0), processes=(process("broker-a", "restarting", "h:1"),))
    assert line.title == "Process broker-a is restarting"
