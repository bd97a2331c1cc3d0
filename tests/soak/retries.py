"""What a producer tried again, by its own report: of the messages, only these may be stored twice."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Self

from gantrymq.client.produce import sender


class Retries(logging.Handler):
    """`with Retries().listening() as retries`: `msg_ids` grows with each message that is tried again meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.msg_ids: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", "") == "send_again":
            self.msg_ids.update(str(getattr(record, "msg_id", "")).split(","))  # a batch has those of its messages

    @contextlib.contextmanager
    def listening(self) -> Iterator[Self]:
        logger = sender.logger
        before = logger.level, logger.propagate
        logger.setLevel(logging.DEBUG)
        logger.propagate = False  # pytest would keep every record, with the error and its frames
        logger.addHandler(self)
        try:
            yield self
        finally:
            logger.removeHandler(self)
            logger.level, logger.propagate = before
