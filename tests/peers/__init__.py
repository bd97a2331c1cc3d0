"""Apache RocketMQ's own servers as a peer for tests: what they do is what ours must do.

`from tests.peers import ApachePeer`; the fixture `apache_peer` comes from `tests.peers.fixtures`. The class lives with
the benchmark, which starts the same peer from the command line.

    with ApachePeer(tmp_path / "apache", heap="512m") as peer:
        peer.namesrv_address, peer.broker_address, peer.broker_name
        peer.stop_broker(); peer.start_broker()        # same port, same store
"""

from appliance.bench.apache_peer import ApachePeer

__all__ = ["ApachePeer"]
