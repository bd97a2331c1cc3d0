"""Signed requests of several accounts, for tests of the fast path."""

from __future__ import annotations

from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.command import JSON, RemotingCommand
from gantrymq.remoting.signature import Credentials, Stamper
from tests.appliance.fast_path.rig import Pair

ADMIN = Credentials("adminKey1", "adminSecret1", stamped=False)
RIGHT = Credentials("rightKey1", "rightSecret1")  # PUB on orders
LISTED = Credentials("listedKey", "listedSecret", "token")  # an administrator with listed topics
STRICT = Credentials("strictKey", "strictSecret")  # may send stamped requests only
HOME = Credentials("homeKey12", "homeSecret1")  # white from 10.1.1.1
LOW = Credentials("lowKey123", "lowSecret123")  # SUB only
WRONG = Credentials("rightKey1", "wrongSecret1")
UNKNOWN = Credentials("nobodyKey", "nobodySecret")
EVERYBODY = (ADMIN, RIGHT, LISTED, STRICT, HOME, LOW, WRONG, UNKNOWN)

ACCOUNTS = """\
globalWhiteRemoteAddresses: [ 10.9.9.* ]
accounts:
- {accessKey: adminKey1, secretKey: adminSecret1, admin: true}
- {accessKey: rightKey1, secretKey: rightSecret1, topicPerms: [ "orders=PUB|SUB", "payments=SUB" ],
   groupPerms: [ "readers=SUB" ]}
- {accessKey: listedKey, secretKey: listedSecret, admin: true, topicPerms: [ "payments=PUB" ]}
- {accessKey: strictKey, secretKey: strictSecret, defaultTopicPerm: PUB, requireStamp: true}
- {accessKey: homeKey12, secretKey: homeSecret1, whiteRemoteAddress: 10.1.1.1}
- {accessKey: lowKey123, secretKey: lowSecret123, defaultTopicPerm: SUB}
"""


def request(
    number: int, body: bytes = b"body", *, code: int = 310, encoding: int = JSON, flag: int = 0, **changes: str
) -> RemotingCommand:
    """A send; changes: ext fields by their letter."""
    fields = {
        "a": "producers", "b": "orders", "c": "TBW102", "d": "4", "e": str(number % 4), "f": "0",
        "g": "1700000000123", "h": "0", "i": f"UNIQ_KEY\x01AC11{number:012d}\x02WAIT\x01true\x02TAGS\x01TagA",
        "j": "0", "k": "false", "m": "false",
    } | changes  # fmt: skip
    return RemotingCommand(code, fields, body, None, number, flag, "JAVA", 401, encoding)


def signed(account: Credentials, send: RemotingCommand, stamper: Stamper | None = None) -> bytes:
    account.sign(send, stamper)
    return send.encode()


async def first_messages(pair: Pair) -> None:
    """One message for each topic: from then on their sends are plain."""
    for number, topic in enumerate(("orders", "payments", "a")):
        await pair.receive(signed(ADMIN, request(number, b=topic, e="0")))
    assert pair.fast.served_fast == 0


def pull(number: int, offset: int = 0, *, encoding: int = JSON, body: bytes = b"", **changes: str) -> RemotingCommand:
    fields = {
        "consumerGroup": "readers", "topic": "orders", "queueId": "0", "queueOffset": str(offset), "maxMsgNums": "32",
        "sysFlag": "5", "commitOffset": str(offset), "suspendTimeoutMillis": "15000", "subscription": "*",
        "subVersion": "0", "expressionType": "TAG",
    } | changes  # fmt: skip
    return RemotingCommand(11, fields, body, None, number, 0, "JAVA", 401, encoding)


async def readable_messages(pair: Pair) -> None:
    for side in (pair.fast, pair.plain):
        for group in ("readers", "others"):
            side.broker.groups.update(SubscriptionGroupConfig(group))
    await first_messages(pair)
    for number in range(10, 20):
        await pair.receive(signed(ADMIN, request(number, e="0")))
