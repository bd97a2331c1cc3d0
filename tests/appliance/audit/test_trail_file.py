"""The file of a trail: two parts of bounded size, whole lines whatever happened before."""

from __future__ import annotations

import json
from pathlib import Path

from appliance.audit.trail_file import NAME, TrailFile, older_part


def test_the_trail_has_two_parts_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "new" / NAME
    trail = TrailFile(path, part_bytes_max=60)
    for number in range(8):
        trail.append(b"line %d...." % number)
    heads, rests = zip(*(part.read_bytes().split(b"\n", 1) for part in (older_part(path), path)), strict=True)
    assert rests == (b"line 4....\nline 5....\n", b"line 6....\nline 7....\n")
    assert len({json.loads(head)["part"] for head in heads}) == 2
    assert sorted(file.name for file in path.parent.iterdir()) == [NAME, f"{NAME}.1"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_ends_before_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b'{"at": 1')
    TrailFile(path).append(b"{}")
    assert path.read_bytes() == b'{"at": 1\n{}\n'
