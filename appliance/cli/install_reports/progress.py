"""An installation writes how far it is: the state file (appliance/reports/install_state.py) and the log."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from appliance.reports.install_state import InstallState
from appliance.settings.replaced_file import replace_file


class Progress:
    """The state file and the log, kept in step; the log alone where the file can't be written."""

    def __init__(self, path: Path) -> None:
        self.state = InstallState()
        self._path = path
        self._told = False

    def begin(self, total: int) -> None:
        self.state = InstallState(state="installing", total=total, started_at=time.time())
        self.write()

    def step(self, text: str) -> None:
        if self.state.step:
            self.state.done += 1
        self.state.step = text
        self.write()
        print(f"{self.state.done + 1} of {self.state.total}: {text}", flush=True)

    def fail(self, error: str) -> None:
        self.state.state, self.state.error = "failed", error
        self.write()
        print(error, file=sys.stderr, flush=True)

    def finish(self) -> None:
        self.state.state, self.state.step, self.state.done = "ready", "", self.state.total
        self.write()
        print("the report stack is ready", flush=True)

    def write(self) -> None:
        self.state.updated_at = time.time()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, json.dumps(asdict(self.state)) + "\n")
        except OSError as exc:
            if not self._told:
                print(f"No page shows the progress: {self._path} can't be written ({exc.strerror})", file=sys.stderr)
            self._told = True
