"""Which kind of file system a folder lies on: tables as kernels write them, this machine's own, and real mounts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.failover import mounts
from appliance.broker.failover.mounts import LOCAL, file_system_of, is_local, kind_of
from tests.conftest import missing, require_tool

TABLE = """\
2 1 254:0 / / rw,relatime - ext4 /dev/vda rw
21 2 0:40 / /srv rw,relatime shared:7 master:3 - nfs4 10.0.0.1:/srv rw,vers=4.2
22 2 0:41 / /srv\\040-\\040two rw,relatime - fuse.sshfs host:/a\\040-\\040b rw
212 21 0:42 / /srv/a rw,relatime shared:9 - zfs pool/a rw

23 2 0:43 cut off
"""
OWN_MOUNTS = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
CODE = str(Path(__file__).parents[4])
TELL = "import sys, pathlib; from appliance.broker.failover.mounts import file_system_of; " \
       "print(*map(file_system_of, map(pathlib.Path, sys.argv[1:])))"  # fmt: skip


@pytest.mark.parametrize(
    ("mount", "kind"),
    [("2", "ext4"), ("21", "nfs4"), ("22", "fuse.sshfs"), ("212", "zfs"), ("1", ""), ("23", ""), ("99", ""), ("", "")],
)
def test_a_mount_is_found_by_its_number(mount: str, kind: str) -> None:
    assert kind_of(mount, TABLE) == kind


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.sshfs", "fuse", "9p", "virtiofs", "ecryptfs",
             "gfs2", "ocfs2", "autofs", "rootfs", "unknown to anyone", ""]
)  # fmt: skip
def test_what_may_be_shared_and_what_is_not_known_is_not_local(kind: str) -> None:
    assert kind not in LOCAL


def test_this_machines_own_table_is_read() -> None:
    assert file_system_of(Path("/proc")) == "proc"
    assert not is_local(Path("/proc"))


def test_a_symbolic_link_leads_to_where_the_store_is(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to("/proc/self")
    assert file_system_of(tmp_path / "store") == "proc"


def test_without_an_answer_of_the_kernel_nothing_is_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_local(tmp_path / "no such folder")
    monkeypatch.setattr(mounts, "PROC", tmp_path)  # as where /proc is not mounted
    assert file_system_of(tmp_path) == ""
    assert not is_local(tmp_path)


@pytest.fixture
def apart() -> Iterator[None]:
    """The right to mount, in name spaces of their own."""
    require_tool("unshare", "it gives a process mounts of its own")
    if subprocess.run([*OWN_MOUNTS, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
        missing("the right to mount", "real mounts show what the kernel says of them")
    yield


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(
    ("mounted", "folders", "kinds"),
    [
        ("mount -t ramfs r outer; mkdir -p outer/inner/deep; mount -t tmpfs t outer/inner; mkdir outer/inner/deep",
         "outer outer/inner/deep", "ramfs tmpfs"),
        ("mount -t ramfs r outer; mount -t tmpfs t outer", "outer", "tmpfs"),
        ("mkdir outer/inner; mount -t ramfs r outer/inner; mount -t tmpfs t outer; mkdir outer/inner",
         "outer/inner", "tmpfs"),
        ("mount -t ramfs r outer; mkdir outer/inner; mount --bind outer/inner other", "other", "ramfs"),
        ("mkdir 'outer/ - a b'; mount -t ramfs r 'outer/ - a b'; mkdir 'outer/ - a b/c'; ln -s 'outer/ - a b/c' link",
         "link", "ramfs"),
        ("mount -t tmpfs t outer; mkdir outer/low outer/up outer/work; "
         "mount -t overlay o -o lowerdir=outer/low,upperdir=outer/up,workdir=outer/work other", "other", "overlay"),
    ],
    ids=["nested", "over a mount", "over what has a mount below", "bind", "blanks", "overlay"],
)  # fmt: skip
def test_of_real_mounts_that_counts_which_one_sees(tmp_path: Path, mounted: str, folders: str, kinds: str) -> None:
    script = f'set -e; mkdir outer other; {mounted}; exec "$0" -c "$1" {folders}'
    done = subprocess.run(
        [*OWN_MOUNTS, "sh", "-c", script, sys.executable, TELL],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": CODE}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.split() == kinds.split()
