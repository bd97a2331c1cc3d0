"""Damage in a broker's log: whichever way it is read, all else is read, and the damaged place is named."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from gantrymq import Message, Producer
from gantrymq.contrib.spark.batch import GantryReader
from gantrymq.contrib.spark.columns import schema_of
from gantrymq.contrib.spark.errors import MessagesLost
from tests.gantrymq.contrib.spark.stores import rows_of
from tests.gantrymq.damaged_log import COUNT, DAMAGE, Spoil, body_byte, spoilt
from tests.harness import serving

COLUMNS = ["queue_offset", "physical_offset", "store_timestamp", "lost_messages", "body"]
WAYS = ["a broker", "a broker that was started again", "a folder"]


class Spoilt:
    """A broker's folder with damage in topic T, and how it is read."""

    def __init__(self, folder: Path, way: str) -> None:
        self._folder, self._way = folder, way
        self.lost: set[int] = set()
        self.places: list[int] = []
        self.found: list[dict[str, Any]] = []
        self.refusal = ""
        self.times_ms: list[int] = []

    async def read(self, spoil: Spoil, columns: list[str]) -> None:
        """Damage it; read it by the way, with failOnDataLoss=false and then true."""
        async with spoilt(self._folder, spoil) as (cluster, lost):
            self.lost = lost or {77, 78}  # whose offset can be guessed is no message with this name, either
            units = cluster.broker.store.consume_queue_units("T", 0, 0, COUNT)
            self.places = [unit.physical_offset for unit in units]
            async with Producer(cluster.namesrv_address) as producer:
                await producer.send(Message("behind", b"so that the end of T is not the end of the log"))
            if self._way == "a broker":
                await self._both({"namesrv": cluster.namesrv_address}, columns)
        if self._way == "a folder":
            await self._both({"path": str(self._folder / "store")}, columns)
        if self._way == "a broker that was started again":
            async with serving(self._folder) as cluster:
                await self._both({"namesrv": cluster.namesrv_address}, columns)

    async def _both(self, options: dict[str, str], columns: list[str]) -> None:
        options |= {"subscribe": "T"}
        going_on = GantryReader(options | {"failOnDataLoss": "false"}, schema_of(columns))
        self.found = await asyncio.to_thread(rows_of, going_on)
        strict = GantryReader(options, schema_of(columns))
        try:
            await asyncio.to_thread(rows_of, strict)
        except MessagesLost as refusal:
            self.refusal = str(refusal)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spoil", DAMAGE)
async def test_all_undamaged_ones_are_read(
    tmp_path: Path, spoil: Spoil, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = Spoilt(tmp_path, way)
    with caplog.at_level(logging.WARNING, "gantrymq.contrib.spark"):
        await made.read(spoil, COLUMNS)
    rows = [row for row in made.found if not row["lost_messages"]]
    assert [row["queue_offset"] for row in rows] == [number for number in range(COUNT) if number not in made.lost]
    assert all(int(row["body"].split()[0]) == row["queue_offset"] for row in rows)
    gaps = [row for row in made.found if row["lost_messages"]]
    told = [row["queue_offset"] + each for row in gaps for each in range(row["lost_messages"])]
    assert sorted(told) == sorted(made.lost)
    assert all(row["physical_offset"] in (None, made.places[row["queue_offset"]]) for row in gaps)
    lines = [line for line in caplog.records if getattr(line, "event", "") == "messages_lost"]
    assert sum(vars(line)["count"] for line in lines) == len(made.lost)
    assert all("damaged on the broker's disk: topic T, queue 0" in line.getMessage() for line in lines)
    assert "damaged on the broker's disk: topic T, queue 0" in made.refusal and "failOnDataLoss=false" in made.refusal
    assert "retention" not in made.refusal


@pytest.mark.parametrize("way", WAYS)
async def test_a_damaged_body_is_missed_only_by_those_who_want_bodies(tmp_path: Path, way: str) -> None:
    made = Spoilt(tmp_path, way)
    await made.read(body_byte, ["queue_offset", "lost_messages"])
    assert not made.refusal
    assert made.found == [{"queue_offset": number, "lost_messages": 0} for number in range(COUNT)]


@pytest.mark.parametrize("way", ["a broker", "a folder"])
async def test_the_place_in_the_log_is_named(tmp_path: Path, way: str) -> None:
    made = Spoilt(tmp_path, way)
    await made.read(body_byte, COLUMNS)
    (gap,) = [row for row in made.found if row["lost_messages"]]
    assert (gap["queue_offset"], gap["physical_offset"]) == (100, made.places[100])
    assert f"offsets 100 to 100 (1 messages), place {made.places[100]} of the log" in made.refusal
