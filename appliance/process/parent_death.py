"""A supervised process ends with its parent, however the parent ended (Linux; elsewhere it does nothing).

The supervisor names itself in GANTRY_PARENT_PID; the child asks the kernel for SIGTERM at the parent's death. A parent
that died before the child could ask is noticed because somebody else is the parent by then.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "GANTRY_PARENT_PID"
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Tie this process to the supervisor that started it. Does nothing for a process started by hand."""
    parent = os.environ.pop(PARENT_VARIABLE, None)  # popped: grandchildren have another parent
    if parent is None or not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != int(parent):
        raise SystemExit("the process that started this one is gone")
