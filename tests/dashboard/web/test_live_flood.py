"""S15: an account that floods the live socket loses its sockets, and brokers don't notice."""

from __future__ import annotations

import time

import pytest
import websocket

from dashboard.live.sockets import CLOSE_TOO_MUCH, SOCKETS_OF_ONE_ACCOUNT_MAX
from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.visitor import Visitor
from tests.waiting import WITHIN_S

SOCKETS = 60
TEXTS = 2000
LARGE = "x" * (1 << 20)
SENDS = 50


def opened(visitor: Visitor) -> list[websocket.WebSocket]:
    """As many sockets as the account gets of those that it asks for."""
    found = []
    for _ in range(SOCKETS):
        try:
            found.append(visitor.live())
        except (websocket.WebSocketException, ConnectionError):
            continue
    return found


def is_ended(live: websocket.WebSocket) -> bool:
    """Whether the server closes the socket within a while."""
    live.settimeout(WITHIN_S)
    try:
        while True:
            opcode, data = live.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                return int.from_bytes(data[:2], "big") in (CLOSE_TOO_MUCH, 1006, 1009)
    except websocket.WebSocketTimeoutException:
        return False
    except (websocket.WebSocketException, OSError):
        return True


def test_s15_a_flood_ends_its_sockets_and_all_messages_stay(gantry: RunningAppliance, administrator: Visitor) -> None:
    lives = opened(administrator)
    try:
        assert 0 < len(lives) <= SOCKETS_OF_ONE_ACCOUNT_MAX
        with SyncProducer(gantry.namesrv) as producer:
            for number, live in enumerate(lives):
                texts = [LARGE] if number % 2 else ['{"subscribe": ["overview"]}'] * TEXTS
                for text in texts:
                    try:
                        live.send(text)
                    except (websocket.WebSocketException, OSError):
                        break  # it was closed meanwhile
            for number in range(SENDS):
                assert producer.send(Message("BesideAFlood", b"%d" % number)).status.name == "SEND_OK"
        assert [number for number, live in enumerate(lives) if not is_ended(live)] == []
    finally:
        for live in lives:
            live.shutdown()
    assert administrator.get("/healthz").status == 200
    until_free(administrator)


def until_free(visitor: Visitor) -> None:
    """Until the account gets a socket again: its others are gone."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        try:
            visitor.live().close()
            return
        except (websocket.WebSocketException, ConnectionError):
            time.sleep(0.1)
    pytest.fail("the account gets no socket any more")
