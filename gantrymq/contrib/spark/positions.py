"""Where a query begins and ends: words, offsets of each queue, or times; and offsets as a checkpoint keeps them.

As in Spark's source for Kafka: a timestamp for all goes before timestamps of queues, and these before offsets; -2 is
the earliest offset of a queue, -1 the latest. A checkpoint goes before all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gantrymq.contrib.spark.options import READING, Options
from gantrymq.contrib.spark.places import Place, by_label
from gantrymq.contrib.spark.ranges import Bounds, Queue
from gantrymq.errors import ConfigError

EARLIEST, LATEST = -2, -1

Edge = Literal["starting", "ending"]


class Position:
    """One edge of a query. `default`: "earliest" or "latest"."""

    def __init__(self, given: Mapping[str, str], edge: Edge, default: str, *, allows_latest: bool = True) -> None:
        options = Options(given, READING)
        self._offsets_name, self._times_name = f"{edge}Offsets", f"{edge}OffsetsByTimestamp"
        self._time_ms = options.number(f"{edge}Timestamp", least=0)
        self._times = options.table(self._times_name) if self._times_name in options else None
        text = options.text(self._offsets_name, default)
        self._word = text if text in ("earliest", "latest") else None
        self._offsets = None if self._word else options.table(self._offsets_name)
        self._is_start = edge == "starting"
        if self._word == "latest" and not allows_latest:
            raise ConfigError("option startingOffsets=latest: a batch would be empty; earliest, offsets or a timestamp")
        if self._word == "earliest" and not self._is_start:
            raise ConfigError("option endingOffsets=earliest: nothing ends before it begins; latest, offsets or a time")

    def resolve(self, place: Place, bounds: Mapping[Queue, Bounds]) -> dict[Queue, int]:
        """An offset for each queue. ConfigError when the options don't say one."""
        if self._time_ms is not None:
            return place.at_time(dict.fromkeys(bounds, self._time_ms))
        if self._times is not None:
            return place.at_time(by_queue(self._times, bounds, self._times_name))
        if self._offsets is None:
            return {queue: found.begin if self._word == "earliest" else found.end for queue, found in bounds.items()}
        said = by_queue(self._offsets, bounds, self._offsets_name)
        return {queue: self._offset(queue, offset, bounds[queue]) for queue, offset in said.items()}

    def _offset(self, queue: Queue, offset: int, found: Bounds) -> int:
        if offset == EARLIEST and self._is_start:
            return found.begin
        if offset == LATEST:
            return found.end
        if not 0 <= offset <= found.end:
            raise ConfigError(
                f"option {self._offsets_name}: {queue}: {offset} is not one of 0 to {found.end}, where the queue ends"
            )
        return offset


def by_queue(table: Mapping[str, Any], queues: Iterable[Queue], option: str) -> dict[Queue, int]:
    """A JSON table, topic to queue to number, for exactly these queues. ConfigError."""
    known = sorted(queues)
    found: dict[Queue, int] = {}
    for topic, numbers in table.items():
        if not isinstance(numbers, dict):
            raise ConfigError(f'option {option}: {topic}: queues with numbers such as {{"0": 23}} are wanted')
        for label, number in numbers.items():
            if not isinstance(number, int) or isinstance(number, bool):
                raise ConfigError(f"option {option}: topic {topic}, queue {label}: a whole number is wanted")
            found[by_label(known, topic, str(label), option)] = number
    missing = [queue for queue in known if queue not in found]
    if missing:
        raise ConfigError(f"option {option}: it says nothing of {missing[0]}")
    return found


def to_checkpoint(offsets: Mapping[Queue, int]) -> dict[str, dict[str, int]]:
    """Offsets as Spark's checkpoint keeps them: topic to queue label to offset."""
    table: dict[str, dict[str, int]] = {}
    for queue, offset in sorted(offsets.items()):
        table.setdefault(queue.topic, {})[queue.label] = offset
    return table


def from_checkpoint(table: Mapping[str, Mapping[str, int]]) -> dict[Queue, int]:
    """The same back."""
    found = {}
    for topic, offsets in table.items():
        for label, offset in offsets.items():
            broker_name, _, queue_id = label.rpartition(":")
            found[Queue(topic, broker_name, int(queue_id))] = offset
    return found
