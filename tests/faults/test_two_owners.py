"""Two processes never have one folder open, be the other one Apache's broker."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.peer import PeerError
from store import MessageStore, StoreLocked
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.traffic import Acknowledged, Traffic, crash_config
from tests.peers import ApachePeer
from tests.peers.fixtures import make_apache_peer
from tests.store.conftest import opened

FILES = {
    "mappedFileSizeCommitLog": str(1 << 17),
    "mappedFileSizeConsumeQueue": "4000",
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
}


def test_a_folder_that_apaches_broker_has_open_is_refused(tmp_path: Path) -> None:
    with make_apache_peer(tmp_path / "apache", broker_properties=FILES) as peer:
        rpc.create_topic(peer.broker_address, "T", 1)
        before = snapshot(peer)
        with pytest.raises(StoreLocked, match="another broker has this store open"):
            MessageStore(crash_config(peer.store)).load()
        assert snapshot(peer) == before
        assert rpc.max_offsets(peer.broker_address, "T", 1) == [0]


def test_apaches_broker_does_not_start_in_a_folder_that_is_open_here(tmp_path: Path) -> None:
    peer = make_apache_peer(tmp_path / "apache", broker_properties=FILES)
    store = opened(crash_config(peer.store))
    stored: list[Acknowledged] = []
    traffic = Traffic(store, random.Random(1), "here", stored.extend)
    stored += [each for number in range(50) for each in traffic.put([f"here.{number}"])[0]]
    try:
        peer.start_namesrv()
        with pytest.raises(PeerError, match="ended with"):
            peer.start_broker()
    finally:
        peer.stop()
    stored += [each for number in range(50, 100) for each in traffic.put([f"here.{number}"])[0]]
    store.close()
    again = opened(crash_config(peer.store))
    Ledger(random.Random(1)).check(again, stored)
    again.close()


def snapshot(peer: ApachePeer) -> dict[str, int]:
    """All files but its settings, which that broker saves every few seconds."""
    files = [path for path in peer.store.rglob("*") if path.is_file() and path.parent.name != "config"]
    return {str(path): path.stat().st_size for path in files}
