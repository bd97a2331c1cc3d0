"""A broker that asks for accounts, and requests signed for one or the other."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from appliance.bench import frames
from gantrymq.message.properties import encode_properties
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import Credentials, Stamper
from tests.appliance.peer import Peer, connected
from tests.harness import ServingCluster, serving

ADMIN = Credentials("adminKey1", "adminSecret1")
RIGHT = Credentials("rightKey1", "rightSecret1")  # PUB and SUB on TopicX, member of GroupX
LOW = Credentials("lowKey123", "lowSecret123")  # PUB and SUB on TopicLow, member of GroupLow
WRONG = Credentials("rightKey1", "wrongSecret1")
UNKNOWN = Credentials("nobodyKey", "nobodySecret")
OPEN = Credentials("openKey12", "openSecret12")  # SUB on whatever is not said otherwise
WHITE_HOST = "10.9.9.9"

PLAIN_ACL = """\
globalWhiteRemoteAddresses:
- 10.9.9.*
accounts:
- accessKey: adminKey1
  secretKey: adminSecret1
  admin: true
- accessKey: rightKey1
  secretKey: rightSecret1
  topicPerms: [ "TopicX=PUB|SUB", "TopicSubOnly=SUB" ]
  groupPerms: [ "GroupX=SUB" ]
- accessKey: lowKey123
  secretKey: lowSecret123
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - TopicLow=PUB|SUB
  groupPerms:
  - GroupLow=SUB
- accessKey: openKey12
  secretKey: openSecret12
  defaultTopicPerm: SUB
  defaultGroupPerm: SUB
  topicPerms: [ "TopicX=DENY" ]
"""

DENIED = "org.apache.rocketmq.acl.common.AclException: "


class SignedPeer:
    """A connection whose requests are signed for the account that is named."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.stamper = Stamper()

    async def ask(
        self, account: Credentials | None, code: int, fields: dict[str, str] | None = None, body: bytes = b""
    ) -> RemotingCommand:
        request = RemotingCommand.request(code, dict(fields or {}), body)
        if account is not None:
            account.sign(request, self.stamper)
        return await self.send(request)

    async def send(self, request: RemotingCommand) -> RemotingCommand:
        self.peer.write(request.encode())
        while not (answer := await self.peer.read()).is_response:
            pass  # a notice (40) may come at any time
        assert answer.opaque == request.opaque
        return answer


def accounts_file(folder: Path, text: str = PLAIN_ACL) -> Path:
    """conf/plain_acl.yml under the folder."""
    path = folder / "conf" / "plain_acl.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


@contextlib.asynccontextmanager
async def guarded(folder: Path, text: str = PLAIN_ACL, **settings: Any) -> AsyncIterator[ServingCluster]:
    """A serving cluster whose broker asks for accounts."""
    accounts_file(folder, text)
    async with serving(folder, broker={"acl_enable": True, "rocketmq_home": folder, **settings}) as cluster:
        yield cluster


@contextlib.asynccontextmanager
async def signed_peer(port: int) -> AsyncIterator[SignedPeer]:
    async with connected(port) as peer:
        yield SignedPeer(peer)


def send_fields(topic: str, **properties: str) -> dict[str, str]:
    """Ext fields of a send (310, 320)."""
    return frames.send_fields("PG", topic, 0, encode_properties(properties))


async def sent(peer: SignedPeer, account: Credentials, topic: str, body: bytes = b"body", **properties: str) -> int:
    """Send, and return the physical offset."""
    answer = await peer.ask(account, RequestCode.SEND_MESSAGE_V2, send_fields(topic, **properties), body)
    assert answer.code == 0, answer.remark
    return int(answer.ext_fields["msgId"][16:], 16)


def is_denied(answer: RemotingCommand) -> bool:
    return answer.code == 16 and (answer.remark or "").startswith(DENIED)


@dataclass
class Client:
    """A connection as the gate sees it, from an address that this machine doesn't have."""

    host: str = "192.0.2.7"
    access: Any = None
    local_host: str = "192.0.2.1"

    @property
    def remote_address(self) -> tuple[str, int]:
        return self.host, 40_000

    @property
    def remote_text(self) -> str:
        return f"{self.host}:40000"
