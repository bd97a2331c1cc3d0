"""A data folder as a promotion leaves it: the log of the lost master, and that of the slave that took over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.appliance.reports.stores import NOON, Record, write_log

FILE_BYTES = 1 << 12
EPOCH_1 = [1, 0, "aaaaaaaaaaaaaaaa"]


@dataclass(frozen=True)
class Promoted:
    """old: offsets in the log of the lost master, of which `lost` were never copied; new: in the promoted one's."""

    data: Path
    old: list[int]
    new: list[int]
    lost: int
    start: int  # of epoch 2

    @property
    def all(self) -> list[int]:
        """What a report has to count: both logs up to where they part, and what the new master took."""
        return self.old[: len(self.old) - self.lost] + [offset for offset in self.new if offset >= self.start]


def log_of(data: Path, name: str) -> Path:
    return data / "brokers" / name / "store" / "commitlog"


def put_standing(data: Path, name: str, settings: str, epochs: list[list[object]], role: object = None) -> None:
    """The broker's settings, and what its store has on record."""
    home = data / "brokers" / name
    (home / "store" / "config").mkdir(parents=True, exist_ok=True)
    (home / "broker.properties").write_text(f"brokerName=broker-a\n{settings}")
    document: dict[str, object] = {"epochs": epochs, "highest": epochs[-1][0]}
    if role is not None:
        document["role"] = role
    (home / "store" / "config" / "epochs.json").write_text(json.dumps(document))


def some(count: int, topic: str, at: int = NOON) -> list[Record]:
    return [Record(topic=topic, body=bytes(200), stored_at=at + number) for number in range(count)]


def promoted(data: Path, *, copied: int = 60, lost: int = 7, later: int = 20, first_file: int = 2) -> Promoted:
    """The slave has the log from the file of that number on."""
    *common, start = write_log(log_of(data, "broker-a"), some(copied, "orders"), file_bytes=FILE_BYTES)
    log, copy = log_of(data, "broker-a"), log_of(data, "broker-a-2")
    copy.mkdir(parents=True)
    for path in sorted(log.iterdir())[first_file:]:
        (copy / path.name).write_bytes(path.read_bytes())
    *tail, _end = write_log(log, some(lost, "lost", NOON + 1000), file_bytes=FILE_BYTES, start=start)
    *new, _end = write_log(copy, some(later, "later", NOON + 2000), file_bytes=FILE_BYTES, start=start)
    put_standing(data, "broker-a", "slavesEnable=true\n", [EPOCH_1])
    role = {"brokerRole": "ASYNC_MASTER", "brokerId": 0, "instead": "SLAVE 1"}
    put_standing(data, "broker-a-2", "brokerRole=SLAVE\nbrokerId=1\n", [EPOCH_1, [2, start, "bbbbbbbbbbbbbbbb"]], role)
    in_copy = [offset for offset in common if offset >= first_file * FILE_BYTES]
    return Promoted(data, common + tail, in_copy + new, lost, start)
