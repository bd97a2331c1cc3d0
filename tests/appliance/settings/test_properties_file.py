"""A properties file changes where it has to, and nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.settings.loader import read_properties
from appliance.settings.properties_file import PropertiesFile, with_values
from tests.bounded import bounded


def test_line_ends_and_a_missing_last_one_are_respected() -> None:
    assert with_values("a=1\r\nb=2", {"a": "3", "c": "4"}) == "a=3\r\nb=2\r\nc=4\r\n"
    assert with_values("", {"a": "1"}) == "a=1\n"


def test_comments_that_look_like_settings_stay() -> None:
    assert with_values("#a=1\n!a=2\n", {"a": "3"}) == "#a=1\n!a=2\na=3\n"


keys = st.text("abcXYZ.", min_size=1, max_size=4)
values = st.text("abc =:#!1", max_size=6)
lines = st.one_of(
    st.builds(lambda key, value: f"{key}={value}", keys, values),
    st.builds(lambda text: f"#{text}", values),
    st.just(""),
    st.builds(lambda key, value: f"  {key} =  {value} ", keys, values),
)


@bounded(100)
@given(st.lists(lines), st.dictionaries(keys, values, max_size=3))
def test_what_was_changed_reads_back_and_the_rest_is_as_before(text: list[str], changes: dict[str, str]) -> None:
    before = read_properties("\n".join(text))
    after = with_values("\n".join(text), changes)
    assert read_properties(after) == before | {key: value.strip() for key, value in changes.items()}
    kept = [line for line in text if line.strip().startswith("#")]
    assert [line for line in after.splitlines() if line.strip().startswith("#")] == kept


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.properties"
    real.write_text("a=1\n")
    link = tmp_path / "link.properties"
    link.symlink_to(real)
    PropertiesFile(link).change({"a": "2"})
    assert link.is_symlink()
    assert real.read_text() == "a=2\n"


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "broker.properties"
    path.write_text("a=1\n")

    def full(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        PropertiesFile(path).change({"a": "2"})
    assert path.read_text() == "a=1\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["broker.properties"]
