"""The log format of every process: one line an event, the facts as key=value after the message.

2026-11-21 08:15:02.113 INFO    appliance.supervisor.supervisor  process serves  event=process_serves child=broker-a
"""

from __future__ import annotations

import logging
import sys

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
FORMAT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s  %(message)s"
FACT_CHARS_MAX = 4096  # some facts are sent by peers
TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


class FactsFormatter(logging.Formatter):
    """Appends the facts given in `extra=` to the line."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{key}={_shown(value)}" for key, value in vars(record).items() if key not in _STANDARD)
        line = super().formatMessage(record)
        return f"{line}  {facts}" if facts else line


def configure(level: str = "INFO", *, stream: object = None) -> None:
    """Log everything from `level` up to `stream` (default: standard error)."""
    handler = logging.StreamHandler(stream or sys.stderr)  # type: ignore[arg-type]
    handler.setFormatter(FactsFormatter(FORMAT, TIME_FORMAT))
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _shown(value: object) -> str:
    text = str(value)
    if len(text) > FACT_CHARS_MAX:
        text = f"{text[:FACT_CHARS_MAX]}… of {len(text)} characters"
    return repr(text) if " " in text or not text.isprintable() else text
