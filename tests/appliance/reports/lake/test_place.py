"""A place for files: what it writes is there whole or not at all, and what it does not have is told apart."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from appliance.reports.lake import place as places
from appliance.reports.lake.place import Place
from appliance.settings.lake_place import StoreAddress

ROWS = pa.table({"topic": ["mail", "orders"], "physical_offset": [7, 5]})


def test_a_file_is_read_as_it_was_written_and_its_bounds_are_told(address: StoreAddress) -> None:
    place = Place(address).below("delta", "messages")
    file = place.write(ROWS, "2026-11-21", ["topic", "physical_offset"], {})
    assert (file.rows, file.date) == (2, "2026-11-21") and file.path.startswith("date=2026-11-21/")
    assert (file.low, file.high) == ({"topic": "mail", "physical_offset": 5}, {"topic": "orders", "physical_offset": 7})
    assert place.read(file.path) == ROWS and place.read(file.path, ["topic"]).column_names == ["topic"]
    assert place.there([file.path, "date=2026-11-21/none.parquet"]) == [file.path]
    assert place.write(ROWS, "2026-11-21", [], {}).path != file.path, "no name comes twice"


def test_what_can_not_be_written_whole_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(places, "sync_path", full)
    with pytest.raises(OSError, match="No space left"):
        Place(tmp_path).write(ROWS, "2026-11-21", [], {})
    assert not list(tmp_path.glob("*/*"))


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A task of a cluster may run where the lake is not."""
    with pytest.raises(FileNotFoundError):
        Place(tmp_path / "none").write(ROWS, "2026-11-21", [], {})


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (OSError(errno.ENOSPC, "x"), True),
        (OSError(errno.EDQUOT, "x"), True),
        (OSError(errno.EACCES, "No space left on device"), False),
        (RuntimeError("Generic LocalFileSystem error: No space left on device (os error 28)"), True),
        (RuntimeError("other"), False),
    ],
)
def test_a_full_disk_is_known_also_in_the_librarys_words(refusal: Any, expected: bool) -> None:
    assert places.is_full(refusal) is expected
