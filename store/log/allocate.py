"""Getting disk blocks and memory pages ready off the loop, ahead of the writer.

The thread starts with the first write, so an idle store owns neither a thread nor pages. It is woken each few MiB; if
it is late, the writer does the same work itself (CommitLog.make_room), only slower.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)

ALLOCATE_AHEAD_BYTES = 64 << 20  # few, large extents
WARM_AHEAD_BYTES = 16 << 20  # clean pages: the kernel may take them back


class Allocator:
    """One daemon thread that calls `prepare` for each request."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        self._prepare = prepare
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Have `prepare` run soon. Called by the writer, costs a microsecond."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="store-allocate", daemon=True)
            self._thread.start()
        self._requests.put(True)

    def close(self) -> None:
        """End the thread and wait for it."""
        if self._thread is not None:
            self._requests.put(False)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while self._requests.get():
            try:
                self._prepare()
            except Exception:  # the writer makes its own room then
                logger.exception("preparing the commit log failed", extra={"event": "prepare_failed"})
