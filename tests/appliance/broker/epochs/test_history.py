"""Epochs: where two logs agree, and what a history may be."""

from __future__ import annotations

import itertools

import pytest

from appliance.broker.epochs.history import EPOCHS_MAX, Epoch, Epochs
from appliance.broker.replication.handshake import Hello
from appliance.broker.replication.joint import LogDiverged, MasterIsOver, where_to_cut

FIRST = Epochs().begun(0)


def master(epochs: Epochs, end: int, begin: int = 0) -> Hello:
    return Hello(broker_name="b", role="ASYNC_MASTER", address="h:1", epochs=epochs, begin=begin, end=end)


def test_each_begins_where_the_log_ends_under_a_higher_number() -> None:
    second = FIRST.begun(700)
    assert [each[:2] for each in second.history] == [(1, 0), (2, 700)]
    assert second.heard(9).begun(800).current == 10
    assert not second.heard(9).is_current
    many = FIRST
    for end in range(EPOCHS_MAX + 10):
        many = many.begun(end)
    assert len(many.history) == EPOCHS_MAX


def test_a_tail_that_the_promoted_slave_never_got_is_cut() -> None:
    promoted = FIRST.begun(700)
    assert where_to_cut(FIRST, 0, 1000, master(promoted, 5000)) == 700
    assert where_to_cut(FIRST, 0, 700, master(promoted, 5000)) is None
    assert where_to_cut(promoted, 0, 900, master(promoted, 5000)) is None


def test_an_epoch_of_the_same_number_is_another_one() -> None:
    one, other = FIRST.begun(700), FIRST.begun(600)
    assert where_to_cut(one, 0, 900, master(other.begun(800), 5000)) == 600


def test_in_one_epoch_nothing_is_cut() -> None:
    assert where_to_cut(FIRST, 0, 1000, master(FIRST, 400)) is None


def test_what_can_not_be_followed_is_told() -> None:
    promoted = FIRST.begun(700)
    with pytest.raises(MasterIsOver, match="epoch 2 has begun"):
        where_to_cut(promoted, 0, 700, master(FIRST, 700))
    with pytest.raises(LogDiverged, match="no epoch in common"):
        where_to_cut(FIRST, 0, 700, master(Epochs().begun(0), 700))
    with pytest.raises(LogDiverged, match="agree up to 700 only"):
        where_to_cut(FIRST, 800, 1000, master(promoted, 5000))
    assert where_to_cut(Epochs(), 0, 700, master(promoted, 5000)) is None, "its bytes are compared"


def test_a_history_comes_back_and_a_wrong_one_is_refused() -> None:
    epochs = FIRST.begun(5).begun(5).heard(7)
    assert Epochs.from_dict(epochs.to_dict()) == epochs
    wrong = [
        {"epochs": [[2, 0, "a"], [1, 5, "b"]], "highest": 2},
        {"epochs": [[1, 9, "a"], [2, 5, "b"]], "highest": 2},
        {"epochs": [[1, 0, "a"]], "highest": 0},
        {"epochs": [[1, 0]], "highest": 1},
        {"epochs": [[1, True, "a"]], "highest": 1},
        {"epochs": 3},
    ]
    for document in wrong:
        with pytest.raises(ValueError, match=r"."):
            Epochs.from_dict(document)


def test_the_joint_is_never_behind_what_both_have() -> None:
    starts = (0, 300, 700)
    histories = [FIRST, FIRST.begun(300), FIRST.begun(700), FIRST.begun(300).begun(700)]
    for (own, theirs), end in itertools.product(itertools.product(histories, repeat=2), (0, *starts, 900)):
        joint = own.joint(end, theirs, 800)
        assert joint is not None and joint <= min(end, 800)
        assert joint == theirs.joint(800, own, end)


def test_epochs_behind_the_logs_end_stay_heard_of() -> None:
    short = FIRST.begun(700).until(600)
    assert short.current == 1 and short.highest == 2 and not short.is_current
    assert Epoch(1, 0, FIRST.history[0].id) in short.begun(600).history


@pytest.mark.parametrize(
    ("heard", "heard_id", "own_id", "is_overtaken"),
    [(7, "before", "own", False), (8, "own", "own", False), (9, "later", "own", True), (9, "later", "", False)],
)
def test_an_epoch_that_etcd_gave_is_over_once_a_later_one_is_heard_of(
    heard: int, heard_id: str, own_id: str, is_overtaken: bool
) -> None:
    """By hand, without an id of etcd, the number is only settled when it begins."""
    epochs = Epochs((Epoch(7, 0, "before"),), heard, heard_id)
    assert epochs.is_overtaken(8, own_id) is is_overtaken
