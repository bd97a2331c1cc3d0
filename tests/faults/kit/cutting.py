"""A process that loads a store and ends its log at a place; it kills itself at the Nth call that the cut makes.

python -m tests.faults.kit.cutting FOLDER END N: N = 0 kills nothing, and prints how many calls there are.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from store import MessageStore
from tests.store.conftest import small_config

FILES: dict[str, Any] = {"commit_log_file_bytes": 16 << 10}
CUT = "cut_log"


class Killer:
    """What sys.setprofile calls: it counts calls, of Python and of C, from the first line of the cut to its end."""

    def __init__(self, kill_at: int) -> None:
        self._kill_at = kill_at
        self._is_within = False
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if frame.f_code.co_name == CUT and event in ("call", "return"):
            self._is_within = event == "call"
        if self._is_within and event in ("call", "c_call"):
            self.calls += 1
            if self.calls == self._kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, end: str, kill_at: str) -> None:
    store = MessageStore(small_config(Path(folder), **FILES))
    killer = Killer(int(kill_at))
    sys.setprofile(killer)
    store.load(cut_to=int(end))
    sys.setprofile(None)
    print(killer.calls)


if __name__ == "__main__":
    main(*sys.argv[1:])
