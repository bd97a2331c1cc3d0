"""Records reach the log through its map or with a write to its file: what is there afterwards is what Python writes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from store.log.commit_log import CommitLog
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send

ROOM = {"commit_log_file_bytes": 8 << 20}
SIZES = (3000, 4000, 5000, 200_000, 1, 255 * 1024, 256 * 1024 - 400, 256 * 1024, 300_000, 2, 1_000_000, 3)


def body(size: int) -> bytes:
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


async def send_all_sizes(pair: Pair) -> None:
    """Alone and together, and between them one that is delayed, which Python stores on both sides."""
    await first_messages(pair)
    for number, size in enumerate(SIZES, 10):
        await pair.receive(send(number, body(size)))
        await pair.receive(send(number + 100, b"later", "DELAY\x011\x02TAGS\x01a"))
    await pair.receive(b"".join(send(number, body(number * 37 % 3000)) for number in range(300, 500)))
    await pair.receive(b"".join(send(number, body(size)) for number, size in enumerate(SIZES, 500)))
    await pair.receive(batch(600, [body(1024)] * 400))
    await pair.receive(batch(601, [body(300_000), b"small", body(300_000), b"last"]))


def behind(pair: Pair) -> bytes:
    """What the file has behind the last record: recovery takes zeros for the end."""
    log = pair.fast.broker.store.parts.log
    file = log.queue.files[-1]
    return bytes(file.map[log.position - file.base :])


async def test_records_of_all_sizes(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path, store=ROOM) as pair:
        await send_all_sizes(pair)
        assert pair.fast.served_fast > 200
        pair.check()
        assert not re.search(rb"[^\0]", behind(pair))


@pytest.mark.parametrize("way", ["there is only the map", "the file refuses"])
async def test_what_can_not_be_written_to_the_file_goes_into_the_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    refusing = os.open(os.devnull, os.O_RDONLY)
    try:
        descriptor = refusing if way == "the file refuses" else -1
        monkeypatch.setattr(CommitLog, "descriptor", property(lambda _log: descriptor))
        with pair_of_brokers(tmp_path, store=ROOM) as pair:
            await send_all_sizes(pair)
            pair.check()
    finally:
        os.close(refusing)


async def test_a_transient_pool_gets_them_first(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path, store=ROOM | {"transient_pool_enable": True}) as pair:
        await send_all_sizes(pair)
        for side in (pair.fast, pair.plain):
            side.broker.store.parts.log.commit()
        pair.check()


async def test_the_fast_path_needs_no_pages_made_ready(pair: Pair) -> None:
    assert not pair.fast.broker.store.parts.log.warms_ahead
    assert pair.plain.broker.store.parts.log.warms_ahead
