"""Every `gantry` command that the pages show is one: its parser takes it. Every file they name is there."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex

import pytest

from appliance.__main__ import COMMANDS
from appliance.cli import admin
from tests.docs.pages import PAGES, ROOT, SHELL

TYPED = [
    (str(block), line.partition(" #")[0].strip())
    for block in SHELL
    for line in block.code.splitlines()
    if re.match(r"\s*(gantry|deploy/up|\.venv/bin/gantry)( |$)", line)
]
NAMED = sorted({(path.name, target) for path in PAGES for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text())})


@pytest.mark.parametrize(("place", "line"), TYPED, ids=[f"{place} {line}" for place, line in TYPED])
def test_a_command_of_the_pages_is_understood(place: str, line: str) -> None:
    words = shlex.split(line)
    if words[0] == "deploy/up":
        words = ["gantry", "up", *words[1:]]
    assert words[1] in COMMANDS, place
    module = importlib.import_module(f"appliance.cli.{words[1].replace('-', '_')}")
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    try:
        arguments = parser.parse_args(words[2:])
        if words[1] == "admin":  # whose first parser takes any verb; the noun's own knows better
            admin._parse(arguments.noun, arguments.rest)
    except SystemExit as exc:
        pytest.fail(f"{place}: {line}: exit code {exc.code}")


@pytest.mark.parametrize(("page", "target"), NAMED, ids=[f"{page} {target}" for page, target in NAMED])
def test_a_link_leads_to_a_file(page: str, target: str) -> None:
    folder = ROOT / "docs" if (ROOT / "docs" / page).is_file() else ROOT
    assert (folder / target).exists(), page
