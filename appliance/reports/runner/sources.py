"""From which folders a broker's log is read, after the master has changed as before.

The promoted slave's log is the one that counts. Two things may be wrong with it for a lake that knew another master:

- The lake has messages that were not copied before that master was lost. The new epoch begins before them, and other
  messages have their places now. They are cut from the lake (cut_lake.py): nothing is counted twice.
- A slave begins with its master's last file, so what lies before may be in the folder of the master of before alone,
  which is read first then: no gap where there is none.
"""

from __future__ import annotations

from typing import NamedTuple

from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.lake.broker_lake import Lake
from appliance.reports.runner.broker_folders import BrokerFolder


class Source(NamedTuple):
    """A folder to read, and up to where; None: to its end."""

    broker: BrokerFolder
    end: int | None


def sources(broker: BrokerFolder, lake: Lake) -> list[Source]:
    """The folders to read for the lake, in order. Raises ReportError."""
    begin = _begin(broker)
    position = lake.position()
    own = Source(broker, None)
    if begin is None or (position is not None and position >= begin):
        return [own]
    older = [(start, copy) for copy in broker.copies if (start := _begin(copy)) is not None and start < begin]
    reaching = [
        (start, copy)
        for start, copy in older
        if (position is None or start <= position) and (broker.standing.shared_until(copy.standing) or 0) >= begin
    ]
    if not reaching:
        return [own]
    _start, copy = min(reaching, key=lambda each: each[0])
    return [Source(copy, begin), own]


def _begin(broker: BrokerFolder) -> int | None:
    """Where a log begins; None when there is none."""
    files = CommitLogFiles(broker.commit_log_folders).begun_files() if broker.has_log else []
    return files[0].start if files else None
