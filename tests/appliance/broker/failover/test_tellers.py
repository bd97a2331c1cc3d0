"""Two processes that tell etcd of the same member: one of them runs on a copy of the other's store."""

from __future__ import annotations

from appliance.broker.failover.on_record import FIGURES_LIFE_S
from appliance.broker.failover.tellers import OTHERS_TURN_S, Tellers
from appliance.failover.view import Figures


def said(session: str, boot: str = "b") -> Figures:
    return Figures("h:1", boot, 4, 500, 500, is_healthy=True, session=session)


def tellers(*, runs: bool | None = None) -> Tellers:
    return Tellers("own", lambda session: runs)


def test_a_process_that_was_there_before_is_not_another_one() -> None:
    seen = tellers(runs=False)
    seen.look((7, said("before")), 0.0)
    assert not seen.is_twice and seen.may_tell(0.0)
    seen.look((8, said("before")), 0.3)  # etcd had its last word late
    assert not seen.is_twice and seen.may_tell(0.3)


def test_one_late_word_of_a_process_that_may_run_elsewhere_makes_nothing_sure() -> None:
    seen = tellers()
    for revision, is_sure in ((7, False), (8, False), (9, True)):
        seen.look((revision, said("before")), 0.3)
        assert seen.is_sure is is_sure


def test_of_one_that_may_run_elsewhere_a_turn_is_waited_for_and_its_next_word_proves_it() -> None:
    seen = tellers()
    seen.look((7, said("other")), 0.0)
    assert not seen.is_twice and not seen.may_tell(OTHERS_TURN_S - 0.1) and seen.may_tell(OTHERS_TURN_S)
    seen.look((9, said("other", "b2")), 2.0)
    assert seen.is_twice and seen.boot == "b2" and not seen.may_tell(2.0 + FIGURES_LIFE_S)
    seen.look((9, said("other", "b2")), 2.1 + FIGURES_LIFE_S)  # it has told nothing since
    assert not seen.is_twice and seen.may_tell(2.1 + FIGURES_LIFE_S)


def test_one_that_is_known_to_run_is_another_one_at_once() -> None:
    seen = tellers(runs=True)
    seen.look((7, said("other")), 0.0)
    assert seen.is_twice and not seen.may_tell(100.0)


def test_who_has_told_sees_by_the_first_word_of_another_one_that_it_came_later() -> None:
    seen = tellers()
    seen.look((7, said("own")), 0.0)
    seen.look((9, said("other")), 2.0)
    assert seen.is_twice and seen.may_tell(2.0)


def test_a_word_of_an_earlier_version_says_nothing() -> None:
    seen = tellers()
    for revision in (7, 9):
        seen.look((revision, said("")), 0.0)
    assert not seen.is_twice and seen.may_tell(0.0)
