"""Waiting until a broker's queues and index show what was sent.

Apache's broker answers a send when the log has the message; a thread of its own feeds queues and index after that, on
a busy machine seconds later. Until then offsets, seeks, searches by time or key and first pulls don't know the message.
"""

from __future__ import annotations

import asyncio

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq.errors import GantryError
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.signature import Credentials
from tests.waiting import wait_until


async def until_dispatched(peer: Peer) -> None:
    """Let the loop go on until all that the peer has acknowledged can be seen."""
    await asyncio.to_thread(wait_dispatched, peer.broker_address)


def wait_dispatched(address: str, credentials: Credentials | None = None) -> None:
    """Block until all that the broker at this address has acknowledged can be seen."""
    wait_until(lambda: _is_dispatched(address, credentials))


def _is_dispatched(address: str, credentials: Credentials | None) -> bool:
    try:
        body = rpc.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO, credentials=credentials).body
    except GantryError:
        return False  # it stood still, or has no figures yet: Apache's has none in its first second
    table: dict[str, str] = fastjson.loads(body)["table"]
    return int(table["dispatchBehindBytes"]) == 0
