"""A command in a child process, which is ended in order and started anew when a source file changes. For development.

The child has a session of its own: Ctrl-C comes here, and is handed on as one SIGTERM.
"""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from gantrymq.client.connection.stop_signals import StopSignals

logger: logging.Logger = logging.getLogger(__name__)

LOOK_S = 0.3
SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "site-packages"})  # and folders that begin with a dot
END_S = 60.0  # for calls in progress (see close_wait_s); then the child is killed, and their messages come again

Sources = dict[Path, tuple[int, int]]  # time of the last change in ns, and size


def run_reloading(command: Sequence[str], folder: Path) -> int:
    """Run the command, again after each change of a Python file below the folder, until SIGTERM or SIGINT. Returns the
    exit code of the last run."""
    stopped: list[bool] = []
    with StopSignals(lambda: stopped.append(True)):
        while True:
            before = sources(folder)
            child = subprocess.Popen(command, start_new_session=True)
            try:
                changed = _watch(child, folder, before, stopped)
            finally:
                code = _end(child)
            if stopped:
                return code
            logger.info("starting again, changed: %s", changed, extra={"event": "reload", "changed": str(changed)})


def _watch(child: subprocess.Popen[bytes], folder: Path, before: Sources, stopped: list[bool]) -> Path | None:
    """The file that changed, None when the end was asked for. A child that ended is told of once: a change may repair
    it."""
    is_told = False
    while not stopped:
        time.sleep(LOOK_S)
        if (changed := changed_file(before, sources(folder))) is not None:
            return changed
        if not is_told and child.poll() is not None:
            is_told = True
            logger.warning(
                "ended with %s; waiting for a change",
                child.returncode,
                extra={"event": "reload_waits", "code": child.returncode},
            )
    return None


def _end(child: subprocess.Popen[bytes]) -> int:
    """Have the child end in order; return its exit code."""
    if child.poll() is None:
        child.terminate()
    try:
        return child.wait(END_S)
    except subprocess.TimeoutExpired:
        logger.warning("killed: it did not end within %s s", END_S, extra={"event": "reload_kills", "limit_s": END_S})
        child.kill()
        return child.wait()


def sources(folder: Path) -> Sources:
    """The Python files below the folder."""
    found: Sources = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith(".")]
        for name in names:
            if name.endswith(".py"):
                path = Path(place, name)
                try:
                    status = path.stat()
                except FileNotFoundError:  # an editor replaces it just now
                    continue
                found[path] = status.st_mtime_ns, status.st_size
    return found


def changed_file(before: Sources, now: Sources) -> Path | None:
    """One that is new, gone or other than before."""
    return next((path for path in sorted(before.keys() | now.keys()) if before.get(path) != now.get(path)), None)
