"""What speaks against a promotion is known again on pages: each sentence of the modules that say so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType

import pytest
from django.utils import translation

from dashboard.language.choice import PLAIN
from dashboard.language.sentences import again, joined
from dashboard.language.told import told_in_words
from gantrymq.client.admin import apache_master, promotion, succession
from tests.source_files import ROOT

# What stands in a sentence: the sides of a choice that is part of one. Everything else is a name or number, "1" here.
CHOICES = {
    "who": ["", " at 10.0.0.3:10911"],
    "since": ["and no name server saw the master end", "and the master ended 1.5 s ago"],
    "apache.STOP_IT": [apache_master.STOP_IT],
}


def sentences(module: ModuleType, *functions: str) -> Iterator[str]:
    """Each text with a value of all functions of the module, or of those named: what they yield, add or raise."""
    tree = ast.parse((ROOT / (module.__name__.replace(".", "/") + ".py")).read_text(encoding="utf-8"))
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for function in (node for node in found if not functions or node.name in functions):
        for node in ast.walk(function):
            if isinstance(node, ast.JoinedStr) and (" " in ast.unparse(node)) and not _is_part(function, node):
                yield from _made(node)


def _is_part(function: ast.AST, text: ast.JoinedStr) -> bool:
    """Whether it is one side of a choice of CHOICES."""
    assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return any(text in ast.walk(node) and ast.unparse(node.targets[0]) in CHOICES for node in assigned)


def _made(text: ast.JoinedStr) -> list[str]:
    made = [""]
    for part in text.values:
        if isinstance(part, ast.Constant):
            sides = [str(part.value)]
        else:
            assert isinstance(part, ast.FormattedValue)
            sides = CHOICES.get(ast.unparse(part.value), ["1"])
        made = [begun + side for begun in made for side in sides]
    return made


OBSTACLES = [*sentences(promotion), *sentences(apache_master), *sentences(succession, "switch")]


def test_the_sentences_are_found() -> None:
    assert len(OBSTACLES) == 30 and "1 is not in sync: its master named 1 last" in OBSTACLES


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_each_obstacle_is_said_in_the_language_of_the_page(obstacle: str) -> None:
    with translation.override(PLAIN):
        known = told_in_words(obstacle)
        assert known == obstacle
    with translation.override("zh-hans"):
        assert again(known) != obstacle


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_obstacles_together_are_each_said_in_the_language_of_the_page(obstacle: str) -> None:
    with translation.override("zh-hans"):
        for other in OBSTACLES:
            apart = [told_in_words(obstacle), told_in_words(other)]
            assert str(told_in_words(f"{obstacle}; {other}")) == str(joined(apart, "; ")), other


@pytest.mark.parametrize(("state", "chinese"), [("connecting", "正在连接"), ("connecting: disk full", "磁盘已满")])
def test_what_a_slave_does_is_said_in_the_language_of_the_page(state: str, chinese: str) -> None:
    with translation.override("zh-hans"):
        shown = str(told_in_words(f"10.0.0.3:10911 is not copying: {state}"))
    assert chinese in shown and "connecting" not in shown


def test_obstacles_within_one_another_without_end_are_shown() -> None:
    deep = "1 is not copying: " * 20_000
    with translation.override("zh-hans"):
        shown = told_in_words(deep)
    assert shown.endswith("1 is not copying: ") and shown != deep
