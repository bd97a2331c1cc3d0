"""What a process forgets when it finds itself forked from another.

Only the thread that forked lives on in the child: what other threads did stands still there, and connections belong to
the parent. Python tells of forks that it makes itself. A server that forks in C does not let it (uWSGI, unless
`py-call-osafterfork` is set), so blocking calls and opening clients look at the process id as well.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

_acts: list[Callable[[], None]] = []
_process_id: int = os.getpid()
_locks: dict[int, threading.Lock] = {}  # by process id: one that the parent held can't be released in the child


def after_fork(act: Callable[[], None]) -> None:
    """Have `act` called once in every child of a fork, in the order of registration."""
    _acts.append(act)


def notice_fork() -> None:
    """Have the acts called when this process is another one than at the last look."""
    if os.getpid() != _process_id:
        _forget()


def _forget() -> None:
    global _process_id
    here = os.getpid()
    with _locks.setdefault(here, threading.Lock()):
        if here == _process_id:  # another thread has just done it
            return
        for act in _acts:
            act()
        _process_id = here


if hasattr(os, "register_at_fork"):  # where there is no fork there is nothing to do after one
    os.register_at_fork(after_in_child=_forget)
