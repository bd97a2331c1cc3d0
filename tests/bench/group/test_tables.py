"""What the program makes of losses and loads."""

from __future__ import annotations

from tests.bench.group.loads import LoadRun
from tests.bench.group.losses import Loss
from tests.bench.group.tables import loads_table, losses_table, memory_table


def run(rate: float) -> LoadRun:
    return LoadRun(rate, 1.0, 2.0, {"master": 10.0, "others": 5.0, "beside": 0.5}, 0.3, {})


def test_the_worst_round_stands_beside_the_median_and_each_is_divided_by_its_own_base() -> None:
    runs = {(32, "ours"): [run(300), run(900), run(800)], (32, "dledger"): [run(100), run(100), run(400)]}
    ours, dledger = loads_table(runs).splitlines()[2:]
    assert ours == "| 32 | ours | 800 | 3.00 (2.00) | 2.0 | 10.0 | 5.0 | 0.5 | 0.3 |"
    assert dledger == "| 32 | dledger | 100 |  | 2.0 | 10.0 | 5.0 | 0.5 | 0.3 |"


def test_without_a_base_there_is_no_ratio() -> None:
    assert "| 1 | ours | 300 |  | 2.0 |" in loads_table({(1, "ours"): [run(300)]})


def test_a_loss_after_which_nothing_was_accepted_is_said() -> None:
    losses = [Loss(1.0, 2.0), Loss(2.0, None).later_by(1.0), Loss(2.0, 1.0)]
    table = losses_table({"ours": losses})
    assert table.splitlines()[-1] == "| ours | 2.0 / 3.0 | 2.0 / 2.0 | 1 of 3 not in time |"


def test_memory_is_told_in_mib() -> None:
    assert "| ours | master | 44 | 3 |" in memory_table({"ours": {"master": (44 << 20, 3 << 20)}})
