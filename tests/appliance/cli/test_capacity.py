"""`gantry capacity`: what a rate needs, from costs that docs/performance.md shows."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from appliance.cli.capacity import CORE_USED, DAY_S, LINK_USED, ROUTES_S, Costs, Goal, work_out
from tests.appliance.cli.running_gantry import run_gantry

DOCS = Path(__file__).resolve().parents[3] / "docs"
PERFORMANCE = (DOCS / "performance.md").read_text(encoding="utf-8")
SCALE = (DOCS / "scale.md").read_text(encoding="utf-8")
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


def test_the_page_shows_every_cost_and_the_figures_that_it_comes_from() -> None:
    rows = [line.split("|")[1:4] for line in SCALE.splitlines() if re.match(r"\| `[a-z_]+`", line)]
    shown = {
        name: float(figure)
        for names, figures, _ in rows
        for name, figure in zip(re.findall(r"`(\w+)`", names), re.findall(r"[\d.]+", figures), strict=True)
        if name in Costs.__dataclass_fields__
    }
    assert shown == dataclasses.asdict(Costs())
    sources = {re.findall(r"`(\w+)`", names)[0]: source for names, _, source in rows}
    small, large = measured("send of 128 B, 16 x 8", 4), measured("send, 16 x 8", 4)
    assert f"128 bytes ({small}) and of 1 KB ({large})" in sources["send_us"]
    (paired, alone) = re.findall(r"a slave \(([\d.]+)\) beside one without \(([\d.]+)\)", sources["give_us"])[0]
    rows_of_both = rf"^\| send, 16 x 8 \| [\d ]+ \| {alone} \|.*\n\| with a slave \| [\d ]+ \| {paired} \|"
    assert re.search(rows_of_both, PERFORMANCE, re.M)
    for verb, place in (("send_soon", "sent with `send_soon`"), ("consume", "consumed")):
        (figure,) = re.findall(rf"([\d.]+) us for (?:a message|one) {place}", SCALE.replace("\n", " "))
        assert re.search(rf"^\| `?{verb}`? \| {figure} \|", PERFORMANCE, re.M), verb


def test_the_pages_formulas_have_the_programs_constants() -> None:
    (formulas,) = [text.replace("\n", " ") for text in SCALE.split("\n\n") if text.startswith("**The formulas.**")]
    for constant in (
        f"/ {CORE_USED} of a core",
        f"/ {LINK_USED} of a link",
        f"/ {LINK_USED} of a disk",
        f"/ {Costs().disk_full} of a disk",
        f"x {DAY_S:,} s".replace(",", " "),
        f"clients x topics / {ROUTES_S} s",
    ):
        assert constant in formulas


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
    one, ten = (work_out(Goal(rate, clients=number, spread=8), Costs()) for rate, number in ((1e5, 100), (1e6, 1000)))
    for reason, masters in one.by.items():
        assert ten.by[reason] == pytest.approx(10 * masters)
    assert ten.name_server_cores == pytest.approx(10 * one.name_server_cores)
    assert work_out(Goal(1), Costs()).masters == 1


def test_a_topic_on_every_broker_makes_large_routes() -> None:
    few, all_ = work_out(Goal(1e6, spread=1), Costs()), work_out(Goal(1e6, spread=0), Costs())
    assert few.name_server_cores == pytest.approx(1000 * 50 / ROUTES_S * 24e-6)
    assert all_.name_server_cores == pytest.approx(1000 * 50 / ROUTES_S * (24 + 11 * (all_.masters - 1)) / 1e6)
    assert (few.name_servers, all_.name_servers) == (2, 3)


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
