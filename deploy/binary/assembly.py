"""Launcher, archives and trailer become one file."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from appliance.own_files import FACTS
from deploy.binary import application, native
from deploy.binary.interpreter import compile_modules, python_of, site_packages, sys_version, tree_with_packages
from deploy.binary.kept import OWN_SOURCES, Kept, hash_of, hash_of_modules
from deploy.binary.parts import BuildError, read_lock, run
from deploy.binary.slimming import check_floor

LAUNCHER = OWN_SOURCES / "launcher"
MARK = b"GANTRY01"  # launcher/payload.go
SIZE_MAX = 50_000_000
FOR_COMPILING = "include", "gantry-fast-path"  # of the tree, and in no shipped file


def build(kept: Kept, output: Path) -> None:
    """Write the single file. Raises BuildError."""
    with kept.alone():
        lock = read_lock()
        tree = tree_with_packages(kept, lock)
        base = packed_base(kept, tree)
        sources = hash_of(repr(lock["launcher"]), *sorted(LAUNCHER.iterdir()))
        launcher = kept.made("launcher", sources, lambda to: compile_launcher(lock, to))
        with tempfile.TemporaryDirectory(dir=kept.folder) as folder:
            own = Path(folder) / "own.tar.zst"
            _pack_own(kept, tree, lock, Path(folder) / "own", own)
            _join(launcher, (base, own), output)
    size = output.stat().st_size
    if size > SIZE_MAX:
        raise BuildError(f"{output} has {size} bytes, more than {SIZE_MAX}")
    with output.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    print(f"{output}: {size / 1e6:.1f} MB, SHA-256 {digest}")


def _pack_own(kept: Kept, tree: Path, lock: dict[str, Any], staged: Path, to: Path) -> None:
    own = staged / site_packages(tree).relative_to(tree)
    application.copy_to(own)
    shutil.copyfile(OWN_SOURCES / "sitecustomize.py", own / "sitecustomize.py")
    native.add_fast_path(kept, tree, own)
    check_floor(staged)
    compile_modules(tree, own)
    python = "{}.{}".format(*sys_version(tree))
    (own / "gantrymq.pth").write_text(f"../../../../reports-{python}\n")  # appliance/reports/install_state.py
    (staged / FACTS).write_text(json.dumps({"contains": lock["interpreter"]["contains"]}) + "\n")
    pack(tree, staged, to, is_last=True)


def compile_launcher(lock: dict[str, Any], to: Path) -> None:
    """The launcher, with the version of Go that the lock names."""
    run(
        ["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", to.absolute(), "."],
        cwd=LAUNCHER, CGO_ENABLED="0", GOFLAGS="-mod=readonly", GOOS="linux", GOARCH="amd64", GOAMD64="v1",
        GOTOOLCHAIN=f"go{lock['launcher']['contains']['go']}",
    )  # fmt: skip


def _join(launcher: Path, archives: Sequence[Path], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    new = output.with_name(output.name + ".new")
    payload = b"".join(archive.read_bytes() for archive in archives)
    program = launcher.read_bytes()
    trailer = struct.pack("<QQ", len(program), len(payload)) + hashlib.sha256(payload).digest() + MARK
    new.write_bytes(program + payload + trailer)
    new.chmod(0o755)
    new.replace(output)


def packed_base(kept: Kept, tree: Path) -> Path:
    """The archive of the tree and the unwinder. Raises BuildError."""
    unwinder = native.unwinder(kept)
    of = hash_of(tree.name, unwinder.name, hash_of_modules("archive", "assembly"))

    def make(to: Path) -> None:
        with tempfile.TemporaryDirectory(dir=kept.folder) as folder:
            staged = Path(folder) / "base"
            shutil.copytree(tree, staged, symlinks=True, ignore=shutil.ignore_patterns(*FOR_COMPILING))
            (staged / "lib" / "fallback").mkdir()  # sitecustomize.py looks there; the interpreter's own path is lib
            shutil.copyfile(unwinder, staged / "lib" / "fallback" / native.UNWINDER)
            check_floor(staged)  # the interpreter and its libraries, too
            pack(tree, staged, to, is_last=False)

    return kept.made("base.tar.zst", of, make)


def pack(tree: Path, folder: Path, to: Path, *, is_last: bool) -> None:
    """Archive a folder by the tree's interpreter. Raises BuildError."""
    run([python_of(tree), "-P", "-B", OWN_SOURCES / "archive.py", folder, to, "end" if is_last else "more"])
