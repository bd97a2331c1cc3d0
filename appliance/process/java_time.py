"""Local times as RocketMQ prints them: its remarks and bodies do, and tools show them."""

from __future__ import annotations

import time


def java_time(time_ms: int, pattern: str = "%Y-%m-%d#%H:%M:%S", before_ms: str = ":") -> str:
    """Local time with milliseconds, by default as 2026-11-21#03:52:12:293."""
    seconds, rest_ms = divmod(time_ms, 1000)
    return f"{time.strftime(pattern, time.localtime(seconds))}{before_ms}{rest_ms:03d}"
