"""The text that Prometheus reads."""

from __future__ import annotations

from dashboard.exporter.exposition import Family, exposition


def test_what_stands_in_a_label_cannot_end_it() -> None:
    family = Family("gantry_group_lag_seconds", "Lag")
    family.add(1.5, group='a"} 9\nfake{x="\\')
    lines = exposition([family]).splitlines()
    assert lines[2] == r'gantry_group_lag_seconds{group="a\"} 9\nfake{x=\"\\"} 1.5'
    assert len(lines) == 6


def test_what_is_not_known_has_no_sample_and_zero_has_one() -> None:
    family = Family("gantry_x", "X")
    for value in (None, float("nan"), float("inf"), 0, 1e15):
        family.add(value)
    assert exposition([family]).splitlines()[2:4] == ["gantry_x 0", "gantry_x 1000000000000000"]


def test_a_page_has_an_end_and_says_what_it_left_out() -> None:
    families = [Family("a", "A"), Family("b", "B")]
    for family in families:
        for number in range(5):
            family.add(number, n=str(number))
    lines = exposition(families, samples_max=7).splitlines()
    assert len([line for line in lines if line[:2] in ("a{", "b{")]) == 7
    assert lines[-1] == "gantry_samples_left_out 3"
