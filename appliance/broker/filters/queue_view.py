"""A unit of a consume queue as 321 shows it: with its extension, filter bits, and what a group's filter says."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from store.base.results import ConsumeQueueUnit
from store.queues.consume_queue_ext import ADDRESS_MAX, ExtUnit
from store.queues.filter import Filter


def unit_view(
    unit: ConsumeQueueUnit, extended: ExtUnit | None, wanted: Filter | None, *, has_group: bool
) -> dict[str, Any]:
    """Return RocketMQ's ConsumeQueueData. `eval` is said of units with an extension only, as there."""
    view: dict[str, Any] = {
        "eval": False,
        "physicOffset": unit.physical_offset,
        "physicSize": unit.size_bytes,
        "tagsCode": unit.tags_code,
    }
    if extended is not None:
        view["extendDataJson"] = _extended_json(extended)
        if extended.bitmap:
            view["bitMap"] = bits_text(extended.bitmap)
        if has_group:
            view["eval"] = wanted is None or wanted.may_match(extended)
    elif unit.tags_code <= ADDRESS_MAX:
        view["msg"] = f"Cq extend not exist!addr: {unit.tags_code}"
    return view


def bits_text(bitmap: bytes) -> str:
    """The bits from the last to the first, a line for each eight bytes (RocketMQ: BitsArray.toString)."""
    lines: list[str] = []
    for index in range(len(bitmap) - 1, -1, -1):
        lines.append(f"{bitmap[index]:08b}" + ("" if index % 8 else "\n"))
    return "".join(lines)


def _extended_json(extended: ExtUnit) -> str:
    fields: dict[str, Any] = {"filterBitMap": base64.b64encode(extended.bitmap).decode()} if extended.bitmap else {}
    fields |= {
        "msgStoreTime": extended.store_timestamp,
        "size": extended.size_bytes,
        "tagsCode": extended.tags_code,
    }
    return orjson.dumps(fields).decode()
