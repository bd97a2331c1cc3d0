"""Limits Django's log lines about single requests: a few of a kind for each address, then only their number.

Any client can request missing pages; a line for each would push all others out of the log. Server errors are always
logged.
"""

from __future__ import annotations

import logging

from gantrymq.log_limit import LogLimit

LOGGERS = ("django.request", "django.security.csrf")


class PeerLogFilter(logging.Filter):
    def __init__(self, limit: LogLimit | None = None) -> None:
        super().__init__()
        self._limit = limit or LogLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        if request is None or record.levelno >= logging.ERROR:
            return True
        kind = f"{record.name} {getattr(record, 'status_code', '')}"
        left_out = self._limit.left_out(kind, request.META.get("REMOTE_ADDR") or "unknown")
        if left_out:
            record.left_out = left_out
        return left_out is not None


def install() -> None:
    """Have Django's loggers pass through it."""
    lines = PeerLogFilter()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(lines)
