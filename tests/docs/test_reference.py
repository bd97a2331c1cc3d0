"""The reference of the SDK: it has every public name, each with a docstring, and the site has every page."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import gantrymq
import gantrymq.contrib.django
import gantrymq.testing
from tests.docs.pages import ROOT

REFERENCE = ROOT / "docs" / "reference"
NAMED = {
    name
    for page in REFERENCE.glob("*.md")
    for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
}
WITH_MODELS = "gantrymq.contrib.django.outbox."  # Django loads them, in a project that has the app
TESTING = {f"gantrymq.testing.{name}" for name in gantrymq.testing.__all__}
PUBLIC = {f"gantrymq.{name}" for name in gantrymq.__all__} | TESTING


def found(name: str) -> Any:
    """The module, or what stands in one, that a dotted name means."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)


def undocumented(name: str, thing: Any) -> Iterator[str]:
    """It, or its public methods and properties that are this project's, as far as they have no docstring."""
    if not (thing.__doc__ or "").strip():
        yield name
    if not inspect.isclass(thing):
        return
    for kind in thing.__mro__:
        for each, value in vars(kind).items() if kind.__module__.startswith("gantrymq") else ():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not each.startswith("_") and inspect.isfunction(function) and not (inspect.getdoc(getattr(thing, each))):
                yield f"{kind.__name__}.{each}"


def test_the_reference_has_every_public_name() -> None:
    assert set() == PUBLIC - NAMED


@pytest.mark.parametrize("name", sorted(name for name in NAMED | PUBLIC if not name.startswith(WITH_MODELS)))
def test_a_public_name_is_there_and_documented(name: str) -> None:
    thing = found(name)
    parts = {f"{name}.{each}": value for each, value in vars(thing).items() if inspect.isclass(value)}
    own = {each: value for each, value in parts.items() if inspect.ismodule(thing) and value.__module__ == name}
    assert [each for known, value in {name: thing, **own}.items() for each in undocumented(known, value)] == []


def test_what_has_no_docstring_is_seen() -> None:
    class Silent:
        def said(self) -> None:
            """Something."""

        def unsaid(self) -> None: ...

    Silent.__module__ = "gantrymq.made_up"
    assert list(undocumented("Silent", Silent)) == ["Silent", "Silent.unsaid"]


def test_the_site_leaves_no_page_out() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    listed = set(re.findall(r"[\w/-]+\.md", str(yaml.safe_load(text)["nav"])))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    from_root = {"index.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"}
    assert listed - from_root == {page for page in pages if not re.match(r"decisions/\d", page)}
