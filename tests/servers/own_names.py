"""Names of hosts that a process has for itself: files of the test in the place of /etc/hosts and /etc/resolv.conf."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conftest import missing, require_tool

NAME_SPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]
OWN_NAMES = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"'
NOBODY = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"  # where no name server answers


def require_own_names() -> None:
    require_tool("unshare", "a process gets names of its own in a name space")
    tried = subprocess.run(
        [*NAME_SPACE, "mount", "--bind", "/etc/hosts", "/etc/hosts"], capture_output=True, check=False
    )
    if tried.returncode:
        missing("the right to mount", "names of one's own need a hosts file in the place of the machine's")


def with_names(folder: Path, hosts: str) -> list[str]:
    """What a command has to begin with. The file `hosts` in the folder may be changed later."""
    (folder / "hosts").write_text(hosts)
    (folder / "resolv.conf").write_text(NOBODY)
    return [*NAME_SPACE, "sh", "-c", OWN_NAMES, "sh", str(folder / "hosts"), str(folder / "resolv.conf")]
