"""Leaves out what nothing here uses: half of what interpreter and packages bring."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterable
from pathlib import Path

from deploy.binary.parts import BuildError

GLIBC_FLOOR = (2, 31)  # no file may ask for a newer one
LANGUAGES = ("en", "zh_Hans")  # of the dashboard; Django brings a hundred
OF_INTERPRETER = """
    bin/[!p]* bin/pip* bin/pydoc* bin/*-config lib/*tcl* lib/thread* lib/libpython*
    lib/python3.*/config-* lib/python3.*/tkinter lib/python3.*/turtle.py lib/python3.*/idlelib
    lib/python3.*/ensurepip lib/python3.*/pydoc_data
    lib/python3.*/lib-dynload/*test* lib/python3.*/lib-dynload/_tkinter* lib/python3.*/lib-dynload/_dbm*
"""
# ujson: another JSON for autobahn, which takes Python's without it; it alone would need libstdc++.
OF_PACKAGES = """
    bin ujson* autobahn/_flatc autobahn/**/test ninja/static zope/**/tests zope/interface/*.c
    twisted/conch twisted/mail twisted/words twisted/**/test cffi/**/*.h uvloop/**/*.pyx uvloop/**/*.px[di]
    **/*.dist-info/RECORD **/*.pyi django/**/*.po **/*.dist-info/sboms
"""
_ELF = b"\x7fELF\x02\x01"  # of 64 bits, little-endian
_SEGMENT_SIZE = 56


def slim_interpreter(tree: Path) -> None:
    _remove(tree, OF_INTERPRETER.split())


def slim_packages(folder: Path) -> None:
    """Raises BuildError for a library that asks for a newer glibc than the floor."""
    _remove(folder, OF_PACKAGES.split())
    for locale in folder.glob("django/**/locale"):
        _remove(locale, (path.name for path in [*locale.iterdir()] if path.name not in (*LANGUAGES, "__init__.py")))
    check_floor(folder)
    for path in programs(folder):
        path.write_bytes(without_symbols(path.read_bytes()))


def check_floor(folder: Path) -> None:
    """No program or library may ask for a newer glibc than the floor. Raises BuildError."""
    for path in programs(folder):
        if (needed := glibc_of(path)) > GLIBC_FLOOR:
            raise BuildError(f"{path.relative_to(folder)} asks for glibc {needed}, the floor is {GLIBC_FLOOR}")


def glibc_of(path: Path) -> tuple[int, int]:
    """The newest glibc that a program or library asks for; (0, 0) when for none.

    Read from its texts: without a table of sections, which nothing shipped has, binutils find none of its symbols.
    """
    versions = re.findall(rb"\bGLIBC_(\d+)\.(\d+)", path.read_bytes())
    return max(((int(major), int(minor)) for major, minor in versions), default=(0, 0))


def programs(folder: Path) -> list[Path]:
    """The files of a folder that the loader loads."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(len(_ELF)) == _ELF:
                    found.append(path)
    return found


def without_symbols(program: bytes) -> bytes:
    """What the loader maps, in its place; what only debuggers and linkers read is cut off, or zero where it lies
    between. Done here, because the same program has to give the same bytes whatever tools a machine has."""
    (segments,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    assert size == _SEGMENT_SIZE, size
    kept = [(0, segments + size * count)]
    for number in range(count):
        offset, length = struct.unpack_from("<8xQ16xQ", program, segments + size * number)
        kept.append((offset, offset + length))
    slim = bytearray(max(end for _, end in kept))
    for begin, end in kept:
        slim[begin:end] = program[begin:end]
    struct.pack_into("<Q", slim, 40, 0)  # where the table of sections is,
    struct.pack_into("<HH", slim, 60, 0, 0)  # and how many there are
    return bytes(slim)


def _remove(folder: Path, patterns: Iterable[str]) -> None:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
