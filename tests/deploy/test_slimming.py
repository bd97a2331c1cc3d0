"""What goes into the single file asks for no newer glibc than the floor, stripped or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deploy.binary.parts import BuildError
from deploy.binary.slimming import GLIBC_FLOOR, check_floor, glibc_of, without_symbols

ELF = b"\x7fELF\x02\x01"


def library(folder: Path, minor: int) -> Path:
    path = folder / "lib" / "python3.14" / "lib-dynload" / "_some.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(ELF + bytes(64) + b"libc.so.6\0GLIBC_2.2.5\0GLIBC_2.%d\0" % minor)
    return path


def test_a_library_at_the_floor_is_taken_and_one_above_is_named(tmp_path: Path) -> None:
    library(tmp_path / "old", GLIBC_FLOOR[1])
    check_floor(tmp_path / "old")
    library(tmp_path / "new", GLIBC_FLOOR[1] + 1)
    with pytest.raises(BuildError, match=r"lib-dynload/_some\.so asks for glibc"):
        check_floor(tmp_path / "new")


def test_a_program_asks_for_the_same_without_its_symbols(tmp_path: Path) -> None:
    program, slim = Path(sys.executable).resolve(), tmp_path / "python3"
    slim.write_bytes(without_symbols(program.read_bytes()))
    assert glibc_of(slim) == glibc_of(program) > (2, 0)
