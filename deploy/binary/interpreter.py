"""The tree of the interpreter with its packages, without what nothing here uses."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

from deploy.binary.kept import Kept, hash_of, hash_of_modules
from deploy.binary.parts import LOCK, BuildError, fetch_artifact, fetch_module, run
from deploy.binary.slimming import GLIBC_FLOOR, slim_interpreter, slim_packages
from deploy.lock_file import LOCKS

_IS_FOLDER = 1 << 31  # in Go's file modes
CONTAINED = """
import json, platform, pyexpat, sqlite3, ssl, zlib
print(json.dumps({
    "cpython": platform.python_version(),
    "openssl": ssl.OPENSSL_VERSION.split()[1],
    "sqlite": sqlite3.sqlite_version,
    "expat": pyexpat.EXPAT_VERSION.removeprefix("expat_"),
    "zlib": zlib.ZLIB_RUNTIME_VERSION,
}))
"""


def interpreter(kept: Kept, lock: dict[str, Any]) -> Path:
    """A folder with bin/, lib/ and, for compiling, include/. Raises BuildError."""
    return kept.made("interpreter", hash_of(*_made_of(lock)), lambda folder: _unpack_interpreter(lock, folder))


def tested_interpreter(kept: Kept, lock: dict[str, Any], version: str) -> Path:
    """The same of one that only tests run on. Raises BuildError, also for a version that the lock does not have."""
    if version not in lock["tested"]:
        raise BuildError(f"{LOCK.name} has no Python {version} for tests, but {', '.join(lock['tested'])}")
    part = lock["tested"][version]
    made_of = hash_of(repr(part), hash_of_modules("interpreter"))
    return kept.made(f"tested-{version}", made_of, lambda folder: _unpack_module(part, folder))


def _made_of(lock: dict[str, Any]) -> tuple[str, str]:
    return repr([lock["interpreter"], lock["headers"]]), hash_of_modules("interpreter", "slimming")


def tree_with_packages(kept: Kept, lock: dict[str, Any]) -> Path:
    """The same with the packages of the appliance. Raises BuildError."""
    locks = [LOCKS / f"{name}.lock" for name in ("appliance", "binary")]
    bare = interpreter(kept, lock)

    def fill(folder: Path) -> None:
        shutil.copytree(bare, folder, symlinks=True)
        install(folder, locks[0], site_packages(folder))
        install(folder, locks[1], site_packages(folder), only="pip")
        slim_packages(site_packages(folder))
        compile_modules(folder, folder / "lib")

    return kept.made("tree", hash_of(*_made_of(lock), *locks), fill)


def install(tree: Path, lock: Path, target: Path, *, only: str | None = None) -> None:
    """Put a lock's packages for the tree's own interpreter into a folder; pip takes no wheel above the floor."""
    asked = lock.read_text(encoding="utf-8")
    if only is not None:
        asked = next(block for block in re.split(r"\n(?=[A-Za-z0-9])", asked) if block.startswith(f"{only}=="))
    requirements = tree / "requirements.txt"
    requirements.write_text(asked, encoding="utf-8")
    # Run by the tree's interpreter, because the lock's conditions are judged by the one that runs pip.
    run(
        [python_of(tree), "-P", own_pip(), "install", "--quiet", "--disable-pip-version-check", "--no-deps",
         "--no-compile", "--root-user-action=ignore", "--only-binary=:all:", "--require-hashes", *foreign_wheels(tree),
         "--upgrade", "--target", target, "-r", requirements],
        PYTHONDONTWRITEBYTECODE="1",
    )  # fmt: skip
    requirements.unlink()


def foreign_wheels(tree: Path) -> list[str]:
    """Options of pip for wheels that the tree's interpreter takes at the floor, whatever this machine's glibc."""
    wheels = [f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC_FLOOR[1], 4, -1)]
    wheels += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]
    version = "{}{}".format(*sys_version(tree))
    options = ["--implementation=cp", f"--python-version={version}", "--abi=abi3", "--abi=none", f"--abi=cp{version}"]
    return [*(f"--platform={name}" for name in wheels), *options]


def own_pip() -> Path:
    """The pip of the running Python, for another one to run."""
    return next(Path(folder) / "pip" for folder in sys.path if (Path(folder) / "pip" / "__main__.py").exists())


def compile_modules(tree: Path, folder: Path) -> None:
    """Byte code beside a folder's modules, which is not compared with its source when it is read. Made by one process
    with a fixed seed: the order of sets and what is interned are part of the bytes.

    Also where there is byte code (-f): what the interpreter itself imports for this it has written with the source's
    time, which no archive keeps, so that each start would compile those modules again."""
    run(
        [python_of(tree), "-P", "-m", "compileall", "-f", "-q", "-j1", "--invalidation-mode=unchecked-hash",
         "-s", folder.parent, "-p", "gantry", folder],
        PYTHONHASHSEED="0",
    )  # fmt: skip


def python_of(tree: Path) -> Path:
    return tree / "bin" / "python3"


def site_packages(tree: Path) -> Path:
    return next((tree / "lib").glob("python3.*")) / "site-packages"


def sys_version(tree: Path) -> tuple[int, int]:
    major, minor = next((tree / "lib").glob("python3.*")).name.removeprefix("python").split(".")
    return int(major), int(minor)


def _unpack_interpreter(lock: dict[str, Any], folder: Path) -> None:
    part = lock["interpreter"]
    _unpack_module(part, folder)
    slim_interpreter(folder)
    site_packages(folder).mkdir()
    _unpack_headers(lock["headers"], folder / "include" / f"python{sys_version(folder)[0]}.{sys_version(folder)[1]}")
    found = json.loads(run([python_of(folder), "-P", "-B", "-c", CONTAINED]))
    if found != part["contains"]:
        raise BuildError(f"the interpreter says {found}, but {LOCK.name} says {part['contains']}")
    _compare_headers(folder)


def _unpack_module(part: dict[str, Any], folder: Path) -> None:
    prefix = f"{part['module']}@{part['version']}/{part['folder']}/"
    with zipfile.ZipFile(fetch_module(part)) as module:
        for item in json.loads(module.read(prefix + "files.json"))["files"]:
            _write(module, prefix, item, folder / item["name"])


def _write(module: zipfile.ZipFile, prefix: str, item: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if item.get("symlink"):
        path.symlink_to(item["symlink"])
        return
    if item["perm"] & _IS_FOLDER:
        path.mkdir(exist_ok=True)
        return
    try:
        content = gzip.decompress(module.read(f"{prefix}{item['name']}.gz"))
    except KeyError:  # too small to be worth it
        content = module.read(prefix + item["name"])
    path.write_bytes(content)
    path.chmod(0o755 if item["perm"] & 0o100 else 0o644)


def _unpack_headers(part: dict[str, Any], folder: Path) -> None:
    prefix = part["folder"] + "/"
    with zipfile.ZipFile(fetch_artifact(part)) as jar:
        for name in jar.namelist():
            if name.startswith(prefix) and not name.endswith("/"):
                path = folder / name.removeprefix(prefix)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(jar.read(name))


HEADERS_AGREE = r"""
import pathlib, re, sys, sysconfig
folder = pathlib.Path(sysconfig.get_path("include"))
version = re.search(r'PY_VERSION\s+"(\d+\.\d+)', (folder / "patchlevel.h").read_text())[1]
if version != "%d.%d" % sys.version_info[:2]:
    sys.exit(f"the headers are of {version}")
text = (folder / "pyconfig.h").read_text()
layout = re.compile(r"SIZEOF_|ALIGNOF_|WORDS_BIGENDIAN|Py_(GIL_DISABLED|DEBUG|REF_DEBUG|TRACE_REFS)")
defined = {name: value for name, value in re.findall(r"^#define (\w+) +(\S+)", text, re.M) if layout.match(name)}
own = {name: str(value) for name, value in sysconfig.get_config_vars().items() if layout.match(name)}
differ = [name for name in sorted(defined | own) if (defined.get(name) or "0") != (own.get(name) or "0")]
if differ or "SIZEOF_SIZE_T" not in defined:
    sys.exit(f"the headers were made for another layout: {differ}")
"""


def _compare_headers(tree: Path) -> None:
    """The headers' sizes and switches that decide how objects lie in memory are those of the interpreter."""
    run([python_of(tree), "-P", "-B", "-c", HEADERS_AGREE])
