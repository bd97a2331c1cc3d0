"""Whether the disk holds what a forecast says, in a sentence for each broker."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from appliance.reports.runner.broker_folders import BrokerFolder
from gantrymq.byte_size import readable

HOURS_A_DAY = 24
BLOCK_BYTES = 512  # of st_blocks, whatever the file system's are


def capacity(brokers: Iterable[BrokerFolder], forecast: Sequence[Mapping[str, Any]]) -> list[str]:
    """`forecast`: rows of the report of that name. Brokers without a forecast or without a log get no sentence."""
    sentences = []
    for broker in brokers:
        highest = [row["high"] for row in forecast if row["broker"] == broker.broker_name and row["kind"] == "forecast"]
        folders = [folder for folder in broker.commit_log_folders if folder.is_dir()]
        if highest and folders:
            sentences.append(_sentence(broker, highest, _held(broker), _room(broker)))
    return sentences


def _sentence(broker: BrokerFolder, highest: Sequence[int], held: int, room: int) -> str:
    days = math.ceil(broker.reserved_hours / HOURS_A_DAY)
    most = max(sum(highest[first : first + days]) for first in range(max(1, len(highest) - days + 1)))
    most = most * broker.reserved_hours // (HOURS_A_DAY * min(days, len(highest)))
    what = (
        f"{broker.broker_name}: its log takes {readable(held)} now and will take up to {readable(most)} at its "
        f"retention of {broker.reserved_hours} h"
    )
    if most <= room:
        return f"{what}; the disk has {readable(room)} for it, which is enough."
    kept = broker.reserved_hours * room // most
    return (
        f"{what}; the disk has {readable(room)} for it until it is {broker.full_percent} % full, so messages may be "
        f"deleted after about {kept} h."
    )


def _held(broker: BrokerFolder) -> int:
    return sum(_sizes(broker))


def _sizes(broker: BrokerFolder) -> Iterator[int]:
    for folder in broker.commit_log_folders:
        if folder.is_dir():
            for file in folder.iterdir():
                try:
                    yield file.stat().st_blocks * BLOCK_BYTES
                except FileNotFoundError:  # the broker's cleaner was quicker
                    continue


def _room(broker: BrokerFolder) -> int:
    """Bytes that the log may have: its own, and what its disks still take until the cleaner must begin."""
    room = _held(broker)
    disks = {folder.stat().st_dev: folder for folder in broker.commit_log_folders if folder.is_dir()}
    for folder in disks.values():
        usage = shutil.disk_usage(folder)
        room += max(0, usage.total * broker.full_percent // 100 - usage.used)
    return room
