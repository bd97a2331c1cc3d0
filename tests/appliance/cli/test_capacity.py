"""`gantry capacity`: what a rate needs, from costs that docs/performance.md shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from appliance.cli.capacity import Costs, Goal, work_out
from tests.appliance.cli.running_gantry import run_gantry

PERFORMANCE = (Path(__file__).resolve().parents[3] / "docs" / "performance.md").read_text(encoding="utf-8")
GENEROUS = Costs(disk_tb=1e6, disk_mb_s=1e6, nic_mb_s=1e6)


def measured(row: str, column: int) -> float:
    """A figure of the table "Figures"; columns count from 1."""
    (line,) = [line for line in PERFORMANCE.split("## Figures")[1].splitlines() if line.startswith(f"| {row} | ")][:1]
    return float(line.split("|")[column + 1].split()[0].replace(" ", ""))


def test_the_costs_are_those_that_were_measured() -> None:
    costs = Costs()
    small, large = measured("send of 128 B, 16 x 8", 4), measured("send, 16 x 8", 4)
    assert costs.send_us_kib == pytest.approx((large - small) / (1024 - 128) * 1024, abs=0.05)
    assert costs.send_us == pytest.approx(small - costs.send_us_kib / 8, abs=0.05)
    assert costs.pull_us == measured("pull of 32, 8 x 1", 4)
    held = re.search(r"the brokers held (\d+) MiB", PERFORMANCE)
    assert held and costs.broker_mib == float(held[1])
    alone, paired, slave = (
        re.findall(r"^\| (?:send, 16 x 8|with a slave) \| [\d ]+ \| ([\d.]+) \| ([\d.]*)", PERFORMANCE, re.M)[0][0],
        *re.findall(r"^\| with a slave \| [\d ]{7,} \| ([\d.]+) \| ([\d.]+)", PERFORMANCE, re.M)[0],
    )
    assert costs.give_us == pytest.approx(float(paired) - float(alone), abs=0.05)
    assert costs.copy_us == float(slave)


@pytest.mark.parametrize(
    ("goal", "costs", "first"),
    [
        (Goal(1e6), Costs(), "disk room"),
        (Goal(1e6, days=0.01), Costs(), "CPU"),
        (Goal(1e6, size=100_000, days=0.01, groups=0, copies=0), Costs(), "disk speed"),
        (Goal(1e5, size=100_000, days=0.01, groups=20), Costs(), "network"),
        (Goal(1e6), GENEROUS, "CPU"),
    ],
)
def test_what_wants_most_brokers_breaks_first(goal: Goal, costs: Costs, first: str) -> None:
    need = work_out(goal, costs)
    assert need.first == first
    assert need.masters >= max(need.by.values())


def test_ten_times_the_rate_needs_ten_times_as_much() -> None:
    one, ten = work_out(Goal(1e5, clients=100), Costs()), work_out(Goal(1e6, clients=1000), Costs())
    for reason, masters in one.by.items():
        assert ten.by[reason] == pytest.approx(10 * masters)
    assert ten.name_server_cores == pytest.approx(10 * one.name_server_cores)
    assert work_out(Goal(1), Costs()).masters == 1


def test_the_command_takes_own_figures(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_gantry(capsys, "capacity", "--rate", "1e6", "--copies", "0", "--set", "disk_tb=1000000")
    assert ran.code == 0
    assert re.search(r"^what breaks first +CPU$", ran.out, re.M)
    assert re.search(r"^masters, slaves +\d+ \+ 0$", ran.out, re.M)


@pytest.mark.parametrize(
    "words",
    [
        ["--rate", "0"],
        ["--rate", "1", "--set", "x=1"],
        ["--rate", "1", "--set", "send_us=fast"],
        ["--rate", "1", "--set", "send_us=-1"],
    ],
)
def test_what_is_no_figure_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_gantry(capsys, "capacity", *words)
    assert ran.code == 2
    assert ran.err
