"""Accounts of brokers that are asked by official clients and tools, and a start that does not ask the broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from appliance.bench import rpc
from appliance.bench.peer import START_TIMEOUT_S, Peer
from gantrymq import Credentials
from gantrymq.errors import GantryError

ADMIN = Credentials("adminKey1", "adminSecret1")
RIGHT = Credentials("rightKey1", "rightSecret1")
LOW = Credentials("lowKey123", "lowSecret123")
PLAIN_ACL = """\
accounts:
- {accessKey: adminKey1, secretKey: adminSecret1, admin: true}
- accessKey: rightKey1
  secretKey: rightSecret1
  topicPerms: [ "TopicX=PUB|SUB" ]
  groupPerms: [ "GroupX=SUB" ]
- accessKey: lowKey123
  secretKey: lowSecret123
  topicPerms: [ "TopicX=SUB" ]
"""


def accounts_at(home: Path) -> None:
    (home / "conf" / "acl").mkdir(parents=True)
    (home / "conf" / "plain_acl.yml").write_text(PLAIN_ACL)
    (home / "conf" / "plain_acl.yml").chmod(0o600)


def launched(peer: Peer) -> Iterator[Peer]:
    """The peer's own start asks the broker, which would take an account."""
    peer.launch()
    try:
        wait_serving(peer)
        yield peer
    finally:
        peer.stop()


def wait_serving(peer: Peer) -> None:
    """Until the broker is registered; asking the broker itself would take an account."""

    def is_registered() -> bool:
        try:
            return peer.broker_name in rpc.registered_brokers(peer.namesrv_address)
        except GantryError:
            return False

    deadline = time.monotonic() + START_TIMEOUT_S
    while not is_registered():
        assert time.monotonic() < deadline, peer.broker.last_output()
        time.sleep(0.2)
