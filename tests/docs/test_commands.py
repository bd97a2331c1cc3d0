"""Every `gantry` command that the pages show is one: its parser takes it. Every file that they name is there."""

from __future__ import annotations

import argparse
import functools
import importlib
import re
import shlex
from pathlib import Path

import pytest

from appliance.cli.admin import main as admin
from appliance.cli.commands import COMMANDS, module_of
from tests.docs.pages import PAGES, ROOT, SHELL
from tests.source_files import sources, sources_of_tests

TYPED = [
    (str(block), re.split(r" [#>]", line)[0].strip())
    for block in SHELL
    for line in block.code.splitlines()
    if re.match(r"\s*(gantry|deploy/up|\.venv/bin/gantry)( |$)", line)
]
LINK = re.compile(r"\]\(([^)#:]+)\)")
NAMED_FILE = re.compile(r"`([\w./-]+\.(?:py|sh))`")


@pytest.mark.parametrize(("place", "line"), TYPED, ids=[f"{place} {line}" for place, line in TYPED])
def test_a_command_of_the_pages_is_understood(place: str, line: str) -> None:
    words = shlex.split(line)
    if words[0] == "deploy/up":
        words = ["gantry", "up", *words[1:]]
    assert words[1] in COMMANDS, place
    module = importlib.import_module(module_of(words[1]))
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    try:
        arguments = parser.parse_args(words[2:])
        if words[1] == "admin":  # whose first parser takes any verb; the noun's own knows better
            admin.parse(arguments.noun, arguments.rest)
    except SystemExit as exc:
        pytest.fail(f"{place}: {line}: exit code {exc.code}")


@functools.cache
def files() -> list[str]:
    """Those that a page may name, from the checkout on."""
    paths = [*(ROOT / "deploy").glob("*.sh"), *sources(), *sources_of_tests()]
    return [f"/{path.relative_to(ROOT)}" for path in paths]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_files_that_are_named_are_there(page: Path) -> None:
    """A file is named from the checkout on, or by its last parts where the text says which folder it stands in."""
    text = page.read_text(encoding="utf-8")
    dead = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    gone = [
        name
        for name in NAMED_FILE.findall(text)
        if "NAME" not in name and not any(path.endswith(f"/{name}") for path in files())
    ]
    assert (dead, gone) == ([], [])
