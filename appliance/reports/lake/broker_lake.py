"""The lake of one broker: its rows in the table of messages, and how far its log is read (reading.py).

The next range begins where the last one ended, and a commit says both, so a range counts once. Two programs that write
the same position at a time: Delta takes one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from appliance.reports.errors import ReportError
from appliance.reports.lake.place import NewFile
from appliance.reports.lake.reading import Gap, Reading, reading_of
from appliance.reports.lake.table import Table, no_hooks


class Lake:
    """One broker's. Reading needs no lock; what writes is called inside `table.writing()`."""

    def __init__(self, table: Table, broker_name: str) -> None:
        self.table = table
        self.broker_name = broker_name

    def reading(self) -> Reading:
        return reading_of(self.broker_name, self.table.numbers())

    def position(self) -> int | None:
        """The physical offset up to which the log is read; None before the first commit."""
        return self.reading().end

    def gaps(self) -> list[Gap]:
        """What the broker deleted unread, and what is damaged."""
        return self.reading().gaps

    def commit(self, begin: int, end: int, added: Sequence[NewFile], last: tuple[int, int, int] | None) -> None:
        """Commit a range, whose files are written. last: its last record. Raises ReportError if it does not follow."""
        stored = [file.low[self.table.time] for file in added]
        earliest_ms = round(min(stored).timestamp() * 1000) if stored else None
        self._follow(begin, added, lambda reading: reading.read(end, last, earliest_ms))

    def commit_gap(self, begin: int, end: int, *, is_damage: bool = False) -> None:
        """Record that the broker has deleted this range of its log before it was read, or that it is damaged."""
        self._follow(begin, (), lambda reading: reading.lose(begin, end, is_damage=is_damage))

    def _follow(self, begin: int, added: Sequence[NewFile], change: Callable[[Reading], None]) -> None:
        reading = self.reading()
        if reading.end is not None and reading.end != begin:
            raise ReportError(f"{self.broker_name}: range of the log from {begin} on does not follow {reading.end}")
        before = reading.numbers(self.broker_name)
        change(reading)
        after = reading.numbers(self.broker_name).items()
        self.table.commit(added, numbers={name: value for name, value in after if before.get(name) != value})

    def set_reading(
        self, reading: Reading, added: Sequence[NewFile] = (), others: Mapping[str, int] | None = None
    ) -> None:
        """Have the next run go on from there, whatever was read before. others: numbers for the same commit."""
        self.table.commit(added, numbers={**reading.numbers(self.broker_name), **(others or {})})

    def begin_anew(self, begin: int) -> None:
        """Keep what is counted, and have the broker's log read from there on."""
        self.set_reading(Reading(begin, None, self.gaps()))

    def cut(self, end: int, last: tuple[int, int, int] | None) -> int:
        """Take out what lies behind an offset of the log, and have the lake end there. Returns how many rows went."""
        from deltalake import CommitProperties, Transaction

        reading = self.reading()
        reading.cut(end, last)
        numbers = [Transaction(name, value) for name, value in reading.numbers(self.broker_name).items()]
        with self.table.changed() as table:
            done = table.delete(
                f"{self._own} AND physical_offset >= {end}",
                commit_properties=CommitProperties(app_transactions=numbers),
                post_commithook_properties=no_hooks(),
            )
        if not done["num_removed_files"]:  # then the library commits nothing
            self.set_reading(reading)
        return int(done["num_deleted_rows"])

    def last_below(self, end: int) -> tuple[int, int] | None:
        """Offset and store timestamp, in ms, of the last record below an offset."""
        found = self.table.query(
            "SELECT physical_offset, CAST(store_timestamp AS BIGINT) / 1000 FROM rows "
            f"WHERE {self._own} AND physical_offset < {end} ORDER BY physical_offset DESC LIMIT 1"
        )
        return (found[0][0], found[0][1]) if found else None

    @property
    def _own(self) -> str:
        name = self.broker_name.replace("'", "''")
        return f"broker_name = '{name}'"
