"""Stacks of all threads of a running process, for `gantry support-bundle`: on SIGUSR2 it prints them into its log.

The signal ends a process that does not know it, such as one of an earlier version, and a JVM, which catches it for
itself: so who asks looks first.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
from pathlib import Path

ASKED = signal.SIGUSR2


def print_stacks_when_asked() -> None:
    """From now on the signal prints the stacks to stderr, also while the interpreter hangs; nothing else happens."""
    faulthandler.register(ASKED, all_threads=True)


def ask_for_stacks(pid: int, known_pid: int) -> bool:
    """Returns whether the process is the same program as `known_pid` and catches the signal, and so was sent it."""
    try:
        if Path(f"/proc/{pid}/exe").readlink() != Path(f"/proc/{known_pid}/exe").readlink():
            return False
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        if caught is None or not int(caught[1], 16) & 1 << (ASKED - 1):
            return False
        os.kill(pid, ASKED)
    except OSError:
        return False
    return True
