"""The part of the payload that changes seldom: the interpreter with its packages, packed once for many builds."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from deploy.binary import native
from deploy.binary.interpreter import python_of
from deploy.binary.kept import OWN_SOURCES, Kept, hash_of, hash_of_modules
from deploy.binary.parts import run
from deploy.binary.slimming import check_floor

FOR_COMPILING = "include", "gantry-fast-path"  # of the tree, and in no shipped file


def packed_base(kept: Kept, tree: Path) -> Path:
    """The archive of the tree and the unwinder. Raises BuildError."""
    unwinder = native.unwinder(kept)
    of = hash_of(tree.name, unwinder.name, hash_of_modules("archive", "base"))

    def make(to: Path) -> None:
        with tempfile.TemporaryDirectory(dir=kept.folder) as folder:
            staged = Path(folder) / "base"
            shutil.copytree(tree, staged, symlinks=True, ignore=shutil.ignore_patterns(*FOR_COMPILING))
            shutil.copyfile(unwinder, staged / "lib" / native.UNWINDER)
            check_floor(staged)  # the interpreter and its libraries, too
            pack(tree, staged, to, is_last=False)

    return kept.made("base.tar.zst", of, make)


def pack(tree: Path, folder: Path, to: Path, *, is_last: bool) -> None:
    """Archive a folder by the tree's interpreter. Raises BuildError."""
    run([python_of(tree), "-P", "-B", OWN_SOURCES / "archive.py", folder, to, "end" if is_last else "more"])
