"""Commits what tasks have written to the lake, in the order of the log, gaps included.

The order makes it exactly-once: files in place and synced, then the commit, then this object's state.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from appliance.reports.lake.broker_lake import Lake
from appliance.reports.lake.range_reader import Stretch

logger = logging.getLogger(__name__)

COMMIT_BYTES = 1 << 30  # of the log
COMMIT_S = 10.0  # what a killed run has to do again


class LakeWriter:
    """Takes stretches that follow each other. `position`: where the last one ends; `committed`: what a crash leaves."""

    def __init__(self, lake: Lake, begin: int) -> None:
        self.lake = lake
        self.position = self.committed = begin
        self.rows = self.files = self.commits = self.gap_bytes = 0
        self._pending: list[Stretch] = []
        self._lost_from: int | None = None
        self._committed_at = time.monotonic()

    def add(self, stretches: Sequence[Stretch]) -> None:
        """Take what became of a range; commit when it is time."""
        for stretch in stretches:
            assert stretch.begin == self.position, (stretch, self.position)
            # Behind a lost stretch a boundary within a file is not proven: only arriving there proves it.
            if stretch.is_lost or (self._lost_from is not None and not stretch.begins_file):
                self.lose(stretch.begin, stretch.end)
                continue
            self._close_gap()
            self._pending.append(stretch)
            self.position = stretch.end
            self.rows += sum(file.rows for file in stretch.files)
        is_much = self.position - self.committed >= COMMIT_BYTES
        if self._pending and (is_much or time.monotonic() - self._committed_at >= COMMIT_S):
            self._commit()

    def lose(self, begin: int, end: int) -> None:
        """Note that the broker deleted this range before it was read."""
        assert begin == self.position, (begin, self.position)
        self._commit()
        if self._lost_from is None:
            self._lost_from = begin
        self.position = end

    def skip(self, begin: int, end: int) -> None:
        """Note that this range is damaged."""
        self.finish()
        assert begin == self.position, (begin, self.position)
        self.lake.commit_gap(begin, end, is_damage=True)
        self.position = self.committed = end
        self.gap_bytes += end - begin
        facts = {"event": "report_damage", "broker": self.lake.broker_name, "from": begin, "to": end}
        logger.error("commit log is damaged", extra=facts)

    def finish(self) -> None:
        """Commit the rest."""
        self._close_gap()
        self._commit()

    def _close_gap(self) -> None:
        if self._lost_from is None:
            return
        begin, self._lost_from = self._lost_from, None
        self.lake.commit_gap(begin, self.position)
        self.committed = self.position
        self.gap_bytes += self.position - begin
        logger.warning(
            "commit log expired unread",
            extra={"event": "report_gap", "broker": self.lake.broker_name, "from": begin, "to": self.position},
        )

    def _commit(self) -> None:
        if not self._pending:
            return
        added = [file for stretch in self._pending for file in stretch.files]
        marks = [stretch.last for stretch in self._pending if stretch.last is not None]
        self.lake.commit(self.committed, self.position, added, marks[-1] if marks else None)
        self.committed = self.position
        self._pending.clear()
        self.files += len(added)
        self.commits += 1
        self._committed_at = time.monotonic()
