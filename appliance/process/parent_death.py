"""A child process ends with its parent, however the parent ended (Linux; elsewhere it does nothing).

The parent names itself in GANTRY_PARENT_PID; the child asks the kernel for SIGTERM at the parent's death. If the parent
died before the child could ask, the child has another parent by then, and ends itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from appliance.settings.variables import PARENT_VARIABLE

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Tie this process to the parent named in the environment. Does nothing for a process that a person started."""
    parent = os.environ.pop(PARENT_VARIABLE, None)  # popped: grandchildren have another parent
    if parent is None or not sys.platform.startswith("linux"):
        return
    ask_for_signal(signal.SIGTERM)
    if os.getppid() != int(parent):
        raise SystemExit("the process that started this one is gone")


def ask_for_signal(number: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent dies. Nothing outside Linux. Raises OSError."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
