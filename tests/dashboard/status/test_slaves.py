"""Masters and slaves on the Overview: who is what, how far, and what is said when one of them goes."""

from __future__ import annotations

from dashboard.status.check import Level
from dashboard.status.metrics import overview_metrics
from dashboard.status.verdict import judge
from tests.dashboard.status.masters import CONNECTION, MASTER, master, seen, slave, state


def test_a_slaves_copies_are_not_counted_as_messages_in_and_what_it_hands_out_is() -> None:
    snapshot = seen(master(), slave())
    assert (snapshot.known_sum("in_rate")[0], snapshot.known_sum("out_rate")[0]) == (5.0, 6.0)
    assert seen(master(), slave("no answer")).known_sum("out_rate") == (3.0, 100.0, None)


def test_the_masters_card_has_a_row_for_each_slave_by_its_own_name() -> None:
    metrics = overview_metrics(seen(master(behind_messages=7), slave())).values
    row = f"broker.broker-a.slave.{CONNECTION}"
    assert [metrics[f"{row}.{name}"].text for name in ("name", "messages")] == ["broker-a:1", "7"]
    stranger = overview_metrics(seen(master(behind_messages=-1), slave(changes={"slaveConnection": "none"}))).values
    assert [stranger[f"{row}.{name}"].text for name in ("name", "messages")] == [CONNECTION, "—"]


def test_masters_can_be_looked_at_as_long_as_there_is_or_was_a_choice() -> None:
    assert not seen(state(MASTER, epoch="1")).has_master_page, "a broker alone since its first start"
    assert seen(state(MASTER, epoch="2")).has_master_page, "it took over, and the old master is away"
    assert seen(state(MASTER, epoch="1"), slave()).has_master_page
    assert not seen(state(MASTER)).has_master_page, "an Apache broker says nothing of epochs"


def test_a_slaves_card_says_what_it_does() -> None:
    metrics = overview_metrics(seen(master(), slave())).values
    assert metrics["broker.broker-a:1.copying.state"].text == "copying"
    assert metrics["broker.broker-a:1.copying.master"].text == "127.0.0.1:10912"


def test_while_a_master_is_away_it_is_said_who_serves() -> None:
    [problem] = judge(seen(master("refused", age_s=10.0), slave())).problems
    assert problem.level is Level.BAD and "consumers read from its slave broker-a:1" in problem.action
    [alone] = judge(seen(master("refused", age_s=10.0))).problems
    assert "Clients use other brokers" in alone.action


def test_a_slave_that_does_not_answer_is_no_alarm_of_its_own() -> None:
    [problem] = judge(seen(master(), slave("refused", age_s=10.0))).problems
    assert problem.level is Level.WARN and problem.title.startswith("Slave broker-a:1 does not answer")


def test_a_broker_of_which_only_slaves_are_left_has_no_master() -> None:
    [problem] = judge(seen(slave())).problems
    assert problem.level is Level.BAD and problem.title == "broker-a has no master"


def test_a_slave_that_copies_nothing_says_why_and_a_person_is_called_when_it_is_stuck() -> None:
    for copying, level in (("connecting", Level.WARN), ("diverged", Level.BAD)):
        told = {"slaveState": copying, "slaveStateWhy": "as it is"}
        [problem] = judge(seen(master(), slave(changes=told))).problems
        assert (problem.level, problem.title) == (level, "Slave broker-a:1 does not copy")
        assert f"{copying}: as it is" in problem.evidence
    assert not judge(seen(master(), slave(changes={"slaveState": "comparing logs"}))).problems


def test_a_slave_that_has_just_started_is_given_the_time_to_reach_its_master() -> None:
    def titles(up_s: float, state: str, why: str = "none", heard: str = "never") -> list[str]:
        told = {"slaveState": state, "slaveStateWhy": why, "slaveHeardSecondsAgo": heard}
        started = {"bootTimestamp": str(int((100.0 - up_s) * 1000))}
        return [problem.title for problem in judge(seen(master(), slave(changes=told | started))).problems]

    warned = ["Slave broker-a:1 does not copy"]
    assert titles(1, "no master known") == titles(90, "connecting") == titles(30, "connecting", "refused") == []
    assert titles(301, "no master known") == titles(61, "connecting", "refused") == warned, "but not for ever"
    assert titles(1, "connecting", "refused", heard="0.4") == warned, "it had reached its master already"
    assert titles(1, "diverged", "they differ") == warned


def test_two_masters_of_one_epoch_are_both_named() -> None:
    told = {"epoch": "2", "epochId": "aaaa", "epochRival": "2 bbbb 10.0.0.9:10911"}
    found = [problem for problem in judge(seen(state(MASTER, **told))).problems if "begun twice" in problem.title]
    assert [problem.level for problem in found] == [Level.BAD]
    assert all(word in found[0].evidence for word in ("aaaa", "10.0.0.9:10911", "bbbb"))
    well = judge(seen(state(MASTER, **told | {"epochRival": "none"}))).problems
    assert not any("begun twice" in problem.title for problem in well)
