"""A bare root made of this machine's own Debian packages: those that every Debian has, and those that are named.

It holds what dpkg lists of them and its records of them, and nothing else, so a package installs there only if what it
depends on is enough. Nothing is fetched. It may be changed at will; entering it needs root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.conftest import missing, require_tool

RECORDS = Path("/var/lib/dpkg")
ALTERNATIVES = {"awk": "/usr/bin/mawk"}  # links that no package lists: its script made them
FOLDERS = ("dev", "proc", "tmp", "run", "var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/alternatives")
ENTER = """
set -e
root=$1; shift
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
exec chroot "$root" "$@"
"""


class BareRoot:
    """A host's path of a file below it is the same file's path inside, too."""

    def __init__(self, folder: Path, *packages: str) -> None:
        for tool in ("dpkg-query", "unshare", "chroot"):
            require_tool(tool, "a bare root is made of Debian's packages")
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
            missing("root that may mount", "a root folder is made: run these tests with sudo")
        self.path = folder
        before = os.umask(0o022)  # whatever an earlier test left: other users read what is made here
        try:
            self._make(packages)
        finally:
            os.umask(before)
        self.run("pwconv")
        self.run("grpconv")
        self.run("pam-auth-update", "--package", "--force")  # without its files no account is made

    def _make(self, packages: tuple[str, ...]) -> None:
        for name in FOLDERS:
            (self.path / name).mkdir(parents=True)
        self._copy(_with_what_they_need({*_essential(), *packages}))
        for name, program in ALTERNATIVES.items():
            (self.path / "etc/alternatives").mkdir(exist_ok=True)
            (self.path / "etc/alternatives" / name).symlink_to(program)
            (self.path / "usr/bin" / name).symlink_to(f"/etc/alternatives/{name}")
        for name in ("passwd", "group"):
            shutil.copy(self.path / f"usr/share/base-passwd/{name}.master", self.path / f"etc/{name}")
        same = self.path / str(self.path)[1:]
        same.parent.mkdir(parents=True, exist_ok=True)
        same.symlink_to("/")

    def command(self, *words: str) -> tuple[str, ...]:
        """What runs the words inside."""
        return ("unshare", "--mount", "sh", "-c", ENTER, "sh", str(self.path), *words)

    def run(self, *words: str) -> str:
        """What they print inside."""
        clean = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(self.command(*words), env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _copy(self, packages: list[str]) -> None:
        listed = _told("dpkg-query", "--listfiles", *packages).splitlines()
        files = sorted({line for line in listed if line.startswith("/") and os.path.lexists(line)})
        records = [str(path) for path in RECORDS.glob("info/*") if path.stem.partition(":")[0] in packages]
        for link in (Path("/", name) for name in ("bin", "lib", "lib64", "sbin")):
            if link.is_symlink():  # to usr, since Debian 12; no package has it
                target = link.readlink()
                (self.path / target).mkdir(parents=True)
                (self.path / link.name).symlink_to(target)
        packed = subprocess.run(
            ["tar", "--create", "--directory=/", "--no-recursion", "--null", "--files-from=-"],
            input="\0".join(name.lstrip("/") or "." for name in [*files, *records]).encode(),
            capture_output=True,
            check=True,
        )
        unpack = ["tar", "--extract", "--keep-directory-symlink", f"--directory={self.path}"]
        subprocess.run(unpack, input=packed.stdout, check=True)
        (self.path / "var/lib/dpkg/status").write_text(_told("dpkg-query", "--status", *packages))


def _essential() -> set[str]:
    told = _told("dpkg-query", "--show", "--showformat=${Essential} ${Package}\n")
    return {line.split()[1] for line in told.splitlines() if line.startswith("yes ")}


def _with_what_they_need(wanted: set[str]) -> list[str]:
    """The packages and all they depend on, of what is installed; of alternatives all that are."""
    asked = "${db:Status-Status}\t${Package}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
    needs: dict[str, set[str]] = {}
    provided: dict[str, set[str]] = {}
    for line in _told("dpkg-query", "--show", f"--showformat={asked}").splitlines():
        status, name, provides, depends = line.split("\t")
        if status == "installed":
            needs[name] = _names(depends)
            for other in _names(provides):
                provided.setdefault(other, set()).add(name)
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in needs and name not in found:
            found.add(name)
            wanted |= needs[name]
        elif name not in needs:
            wanted |= provided.get(name, set()) - found
    return sorted(found)


def _names(relations: str) -> set[str]:
    """Of `a (>= 1) | b, c:any`: a, b and c."""
    return {
        match[1] for part in re.split(r"[,|]", relations) if (match := re.match(r"\s*([a-z0-9][a-z0-9+.-]*)", part))
    }


def _told(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
