"""On which kind of file system a folder lies, by the kernel's mount table.

A lock in a file keeps out the other processes of this kernel. Of a network file system it may say nothing of other
machines, as that depends on how each of them has mounted it; only kinds that one kernel has for itself count as local.
"""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc/self")
LOCAL = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "tmpfs", "xfs", "zfs"})


def is_local(folder: Path) -> bool:
    """Whether a lock there keeps out the processes of other machines. A kind that is not known does not."""
    return file_system_of(folder) in LOCAL


def file_system_of(folder: Path) -> str:
    """The kind, as mountinfo(5) names it; "": it is not known, or there is no such folder. Blocks."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            facts = (PROC / "fdinfo" / str(opened)).read_text(encoding="ascii").splitlines()
        finally:
            os.close(opened)
        table = (PROC / "mountinfo").read_bytes()  # paths may be of any bytes
    except OSError:
        return ""
    mount = next((line.split()[1] for line in facts if line.startswith("mnt_id:")), "")
    return kind_of(mount, table.decode("utf-8", errors="replace"))


def kind_of(mount: str, table: str) -> str:
    """The kind of that mount, by the id that the kernel has given it; "": it is not in the table."""
    for line in table.splitlines():
        where, _, what = line.partition(" - ")  # further fields may come before: none, one, or several
        if mount and where.split(" ")[0] == mount:
            return what.split(" ")[0]
    return ""
