"""A problem is called the same from look to look: figures are its evidence."""

from __future__ import annotations

from django.utils import translation

from dashboard.status.verdict import checked
from tests.dashboard.status import troubled


def titles(more: int) -> list[list[tuple[str, str]]]:
    return [sorted((one.title, one.identity) for one in checked(each)) for each in troubled.snapshots(more)]


def test_titles_and_names_stay_the_same_when_only_figures_change() -> None:
    few, many = titles(1), titles(3)
    assert few == many
    assert all(few), "each of these clusters has problems"
    evidence = [[one.evidence for one in checked(each)] for each in troubled.snapshots(1)]
    assert evidence != [[one.evidence for one in checked(each)] for each in troubled.snapshots(3)]


def test_an_alert_is_known_again_in_every_language() -> None:
    in_english = titles(1)
    with translation.override("zh-hans"):
        in_chinese = titles(1)
    assert [[name for _, name in each] for each in in_chinese] != [[title for title, _ in each] for each in in_chinese]
    assert sorted(name for each in in_chinese for _, name in each) == sorted(
        name for each in in_english for _, name in each
    )
