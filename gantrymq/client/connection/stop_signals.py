"""SIGTERM and SIGINT end a client in order; the second one ends the process at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from gantrymq.errors import ConfigError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """While the block runs, the first signal calls `stop`; then the former handlers are back. Main thread only."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise ConfigError("run() waits for signals, which only the main thread gets: elsewhere use start and close")
        self._former = {each: signal.signal(each, self._on_signal) for each in SIGNALS}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._restore()
        self._stop()

    def _restore(self) -> None:
        while self._former:
            each, handler = self._former.popitem()
            signal.signal(each, handler)
