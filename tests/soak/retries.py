"""What a producer tried again without an answer, by its own report: only these messages may be stored twice."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Self

from gantrymq.client.produce import sender
from gantrymq.errors import ConnectError, GantryError, RequestTimeout


class Retries(logging.Handler):
    """`with Retries().listening() as retries`: `msg_ids` grows with each message that is tried again meanwhile because
    an answer is missing. One that was refused is stored nowhere: nothing explains its double."""

    def __init__(self) -> None:
        super().__init__()
        self.msg_ids: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", "") == "send_again" and getattr(record, "may_be_stored", False):
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


def may_be_stored(failure: GantryError) -> bool:
    """Whether a send that ended so may have stored its message: the answer to its last try is missing, or maybe to one
    before. The failure has a note of those, and the message's id is not known here."""
    return isinstance(failure, ConnectError | RequestTimeout) or hasattr(failure, "__notes__")
