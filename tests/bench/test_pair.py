"""Following a slave until it has its master's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.bench import pair, rpc
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.pair import wait_until_copied
from appliance.bench.peer import Peer, PeerError
from gantrymq.errors import ResponseError

NO_FIGURES = ResponseError(1, "java.util.NoSuchElementException, java.util.LinkedList.getLast(LinkedList.java:262)")


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Peer, Peer]:
    """Two that write to no process: what they answer is the test's."""
    monkeypatch.setattr(Peer, "broker_address", property(lambda peer: peer.label))
    return GantryPeer(tmp_path, label="slave"), GantryPeer(tmp_path, label="master")


def test_a_broker_without_figures_yet_is_asked_again(peers: tuple[Peer, Peer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Apache's has none in its first second, and says so with an exception of its own."""
    slave_says: list[int | ResponseError] = [NO_FIGURES, 0, NO_FIGURES, 7]

    def log_end(address: str, _credentials: object) -> int:
        end = 7 if address == "master" else slave_says.pop(0)
        if isinstance(end, ResponseError):
            raise end
        return end

    monkeypatch.setattr(rpc, "log_end", log_end)
    assert wait_until_copied(*peers) > 0
    assert slave_says == []


def test_a_slave_that_never_has_it_is_told_with_the_reason(
    peers: tuple[Peer, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def log_end(_address: str, _credentials: object) -> int:
        raise NO_FIGURES

    monkeypatch.setattr(rpc, "log_end", log_end)
    monkeypatch.setattr(pair, "COPY_TIMEOUT_S", -1.0)
    monkeypatch.setattr(Peer, "broker", property(lambda peer: peer))
    monkeypatch.setattr(Peer, "last_output", lambda peer: "the end of its log", raising=False)
    with pytest.raises(PeerError, match=r"slave: the slave has not got the log \(.*getLast.*the end of its log"):
        wait_until_copied(*peers)
