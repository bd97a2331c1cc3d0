"""The forms for issues: what the site that shows them requires, and nothing that asks for secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in FOLDER.glob("*.yml") if path.name != "config.yml")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_names_and_questions(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"]
    questions = [part for part in form["body"] if part["type"] != "markdown"]
    assert all(part["id"] and part["attributes"]["label"] for part in questions)
    assert any(part.get("validations", {}).get("required") for part in questions)


def test_who_found_a_vulnerability_is_sent_elsewhere() -> None:
    assert "SECURITY.md" in (FOLDER / "bug.yml").read_text(encoding="utf-8")
    assert len(FORMS) == 2
