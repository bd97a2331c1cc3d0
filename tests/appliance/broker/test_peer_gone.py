"""A peer that resets its connection before it is accepted: its address can't be asked any more."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from pathlib import Path

import pytest

from tests.appliance.broker.replication.pair import MASTER
from tests.appliance.peer import connected
from tests.harness import serving
from tests.waiting import until

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: no good-bye


@pytest.mark.parametrize("door", ["server", "slaves"])
async def test_a_peer_that_is_gone_already_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, door: str
) -> None:
    with caplog.at_level(logging.INFO):
        async with serving(tmp_path, broker=MASTER) as cluster:
            with socket.create_connection(("127.0.0.1", getattr(cluster.broker, door).port)) as peer:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            ends = ("connection closed", "connection of no slave ended")
            await until(lambda: any(line.message.startswith(ends) for line in caplog.records))
            async with connected(cluster.broker.port):  # it serves on
                await asyncio.sleep(0)
    assert [line.message for line in caplog.records if line.levelno >= logging.ERROR] == []
