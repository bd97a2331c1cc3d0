"""The bill of materials: valid, complete, always the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from deploy.lock_file import carried, lock_names, pinned
from deploy.sbom import bill_of_materials
from gantrymq import __version__
from tests.conftest import missing

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
