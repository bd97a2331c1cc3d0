"""Apache RocketMQ starts, registers, restarts at its old port, and stops."""

from __future__ import annotations

from pathlib import Path

from appliance.bench import rpc
from tests.peers.fixtures import make_apache_peer


def test_apache_rocketmq_starts_registers_and_comes_back_at_the_same_port(tmp_path: Path) -> None:
    with make_apache_peer(tmp_path / "apache") as peer:
        assert rpc.registered_brokers(peer.namesrv_address) == {peer.broker_name}
        rpc.create_topic(peer.broker_address, "PeerTopic", 4)
        assert rpc.max_offsets(peer.broker_address, "PeerTopic", 4) == [0, 0, 0, 0]
        address, memory = peer.broker_address, peer.memory()
        assert memory["broker"].rss_bytes > 50 << 20
        pids = [peer.broker.pid, peer.namesrv.pid]
        peer.kill_broker()
        peer.start_broker()
        assert peer.broker_address == address
        pids.append(peer.broker.pid)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
