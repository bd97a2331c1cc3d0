"""Byte code of the single file is read as it is, and the same whenever it was made."""

from __future__ import annotations

import os
import py_compile
import struct
import sys
from pathlib import Path

from deploy.binary.interpreter import compile_modules

UNCHECKED = 1  # the flags of byte code that is not compared with its source


def compiled(folder: Path, source_time: int) -> bytes:
    """A module's byte code after an interpreter has imported it and then all modules were compiled."""
    (folder / "tree" / "bin").mkdir(parents=True)
    (folder / "tree" / "bin" / "python3").symlink_to(sys.executable)
    source = folder / "lib" / "enum.py"
    source.parent.mkdir()
    source.write_text("FLAGS = {'a', 'b'}\n")
    os.utime(source, (source_time, source_time))
    py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    compile_modules(folder / "tree", source.parent)
    (made,) = source.parent.rglob("*.pyc")
    return made.read_bytes()


def test_what_an_import_has_left_is_made_anew(tmp_path: Path) -> None:
    first, second = (compiled(tmp_path / str(time), time) for time in (1_600_000_000, 1_700_000_000))
    assert struct.unpack_from("<L", first, 4) == (UNCHECKED,)
    assert first == second
