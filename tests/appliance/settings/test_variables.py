"""Every variable that begins as settings do is a setting, or is declared as none: nobody exports what others refuse."""

from __future__ import annotations

import dataclasses
import re

import pytest

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.variables import ENVIRONMENT_PREFIX, RESERVED_PREFIXES, RESERVED_VARIABLES
from gantrymq.errors import ConfigError
from tests.source_files import ROOT, sources

NAME = re.compile(r"(?<![A-Z_])GANTRY_[A-Z0-9]+(?:_[A-Z0-9]+)*\b")
PAGES = ("README.md", "docs/**/*.md", "templates/**/*.html", "deploy/*")
SETTINGS = {ENVIRONMENT_PREFIX + field.name.upper() for field in dataclasses.fields(ApplianceConfig)}


def named() -> dict[str, str]:
    """Each such name in the product and on its pages, and a file that has it."""
    files = [*sources(), *(path for pattern in PAGES for path in ROOT.glob(pattern) if path.is_file())]
    return {name: str(path.relative_to(ROOT)) for path in files for name in NAME.findall(path.read_text("utf-8"))}


def load(environment: dict[str, str]) -> ApplianceConfig:
    return ApplianceConfig.load({}, environment, working_folder=ROOT / "tests")  # where no gantry.toml is


def test_what_programs_and_pages_name_is_a_setting_or_declared_as_none() -> None:
    found = named()
    assert {"GANTRY_TOKEN", "GANTRY_URL", "GANTRY_HTTP_PORT"} <= set(found), "this looks at the wrong files"
    strange = {name: path for name, path in found.items() if name not in {*SETTINGS, *RESERVED_VARIABLES}}
    strange = {name: path for name, path in strange.items() if not name.startswith(RESERVED_PREFIXES)}
    assert strange == {}
    assert set(RESERVED_VARIABLES) <= set(found), "declared, and nobody reads it"


@pytest.mark.parametrize("name", RESERVED_VARIABLES[1:])
def test_no_command_refuses_what_another_reads(name: str) -> None:
    assert load({name: "x"}) == load({})


def test_a_name_that_nobody_reads_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="unknown setting GANTRY_TOKNE"):
        load({"GANTRY_TOKNE": "x"})
