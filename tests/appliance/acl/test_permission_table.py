"""Every request code, for every kind of account: the table as somebody outside reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.acl.access import AccessDenied
from appliance.acl.permission_table import PERMISSIONS
from appliance.broker.processors.table import TABLE
from appliance.errors import BrokerError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    LockBatchRequest,
    SubscriptionData,
)
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.pop_bodies import BatchAck, BatchAckRequest, QueryAssignmentRequest
from gantrymq.remoting.signature import Credentials, Stamper
from tests.appliance.acl.cluster import (
    ADMIN,
    LOW,
    RIGHT,
    UNKNOWN,
    WHITE_HOST,
    WRONG,
    Client,
    SignedPeer,
    guarded,
    is_denied,
    send_fields,
    sent,
    signed_peer,
)
from tests.harness import ServingCluster

# What administrators alone may ask. 17, 25, 200, 207 and 215 are RocketMQ's own list; the rest it leaves open.
FOR_ADMINS = {
    17, 18, 21, 25, 26, 28, 43, 45, 50, 51, 52, 53, 54, 200, 201, 204, 207, 215, 222, 225, 301, 306, 308, 309, 314,
    315, 316, 317, 323, 328, 329, 401, 907, 29401, 29402,
    29403, 29404, 29405, 29406, 29407, 29408, 29409,
}  # fmt: skip
FOR_ANY_ACCOUNT = {305}
FOR_WHO_HAS_THE_TOPIC_OR_GROUP = {
    10, 11, 12, 14, 15, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 41, 42, 46, 202, 203, 208, 223, 300, 303, 307, 310,
    320, 321, 324, 325, 343, 345, 351, 352, 361, 370, 200050, 200051, 200053, 200054, 200151, 400, 29410,
}  # fmt: skip
CODES = {int(row.code) for row in TABLE}  # that a broker serves
ALL = sorted(FOR_ADMINS | FOR_ANY_ACCOUNT | FOR_WHO_HAS_THE_TOPIC_OR_GROUP)

SUBSCRIPTION = SubscriptionData(topic="TopicX")
BODIES: dict[int, bytes] = {
    34: HeartbeatData("client", [], [ConsumerData("GroupX", subscription_data_set=[SUBSCRIPTION])]).to_json(),
    41: LockBatchRequest("GroupX", "client", [MessageQueue("TopicX", "broker-a", 0)]).to_json(),
    42: LockBatchRequest("GroupX", "client", [MessageQueue("TopicX", "broker-a", 0)]).to_json(),
    46: CheckClientRequestBody("client", "GroupX", SUBSCRIPTION).to_json(),
    400: QueryAssignmentRequest("TopicX", "GroupX", "client", "AVG").to_json(),
    200151: BatchAckRequest("broker-a", [BatchAck("GroupX", "TopicX")]).to_json(),
}


@dataclass
class Guarded:
    cluster: ServingCluster
    peer: SignedPeer
    offset: int  # of a message of TopicX

    def request(self, code: int, account: Credentials | None) -> RemotingCommand:
        """A request that names TopicX, GroupX and the message in every field where a handler might look."""
        fields = {
            "topic": "TopicX",
            "consumerGroup": "GroupX",
            "group": "GroupX",
            "offset": str(self.offset),
            "commitLogOffset": str(self.offset),
        }
        if code in (310, 320, 325):
            fields = send_fields("TopicX")
        request = RemotingCommand.request(code, fields, BODIES.get(code, b""))
        if account is not None:
            account.sign(request, self.peer.stamper)
        return request

    def is_let_in(self, code: int, account: Credentials | None, client: Client) -> bool:
        """Ask the broker's gate itself, so that nothing is deleted on the way."""
        assert self.cluster.broker.access is not None
        request = RemotingCommand.request(code, self.request(code, None).ext_fields, BODIES.get(code, b""))
        if account is not None:
            account.sign(request, Stamper())
        try:
            self.cluster.broker.access(client, request)
        except AccessDenied:
            return False
        return True


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Guarded]:
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        offset = await sent(peer, RIGHT, "TopicX")
        yield Guarded(cluster, peer, offset)


def test_every_code_that_a_broker_serves_stands_in_the_table() -> None:
    """S30."""
    assert set(map(int, PERMISSIONS)) >= CODES


def test_the_table_says_what_this_file_says() -> None:
    assert sorted(map(int, PERMISSIONS)) == ALL


@pytest.mark.parametrize("account", [None, WRONG, UNKNOWN], ids=["no account", "wrong signature", "unknown account"])
async def test_nobody_gets_in_without_an_account(broker: Guarded, account: Credentials | None) -> None:
    """S30."""
    let_in = []
    for code in sorted(CODES):
        answer = await broker.peer.send(broker.request(code, account))
        if not is_denied(answer):
            let_in.append((code, answer))
    assert let_in == []


async def test_an_account_without_the_topic_gets_nothing_of_it(broker: Guarded) -> None:
    """S30, S39."""
    let_in = set()
    for code in sorted(CODES):
        answer = await broker.peer.send(broker.request(code, LOW))
        if not is_denied(answer):
            let_in.add(code)
    assert let_in == FOR_ANY_ACCOUNT & CODES


async def test_an_account_with_topic_and_group_gets_all_but_administration(broker: Guarded) -> None:
    """S30, S33: reading the settings is administration too."""
    let_in = {code for code in ALL if broker.is_let_in(code, RIGHT, Client())}
    assert let_in == FOR_WHO_HAS_THE_TOPIC_OR_GROUP | FOR_ANY_ACCOUNT


HALVES_OF_AN_ACCOUNT = """\
accounts:
- {accessKey: may_send, secretKey: secretOfOne, topicPerms: [ "TopicX=PUB" ], groupPerms: [ "GroupX=SUB" ]}
- {accessKey: may_read, secretKey: secretOfOne, topicPerms: [ "TopicX=SUB" ], groupPerms: [ "GroupX=SUB" ]}
- {accessKey: no_group, secretKey: secretOfOne, topicPerms: [ "TopicX=PUB|SUB" ]}
- {accessKey: no_topic, secretKey: secretOfOne, groupPerms: [ "GroupX=SUB" ]}
- {accessKey: rightKey1, secretKey: rightSecret1, topicPerms: [ "TopicX=PUB" ]}
"""
SENDS = {10, 37, 310, 320, 324, 325, 370}
POPS = {400, 200050, 200051, 200053, 200054, 200151}
READS = {11, 12, 14, 15, 29, 30, 31, 32, 33, 34, 36, 41, 42, 46, 208, 223, 303, 321, 345, 361} | POPS
LOOKS = {202, 300, 351}  # either will do
LEASES = 29410
OF_A_GROUP = {11, 14, 15, 34, 35, 36, 38, 41, 42, 46, 203, 208, 223, 303, 307, 321, 343, 345, 352, 361, LEASES} | POPS
REFUSED = {"may_send": READS, "may_read": SENDS, "no_group": OF_A_GROUP, "no_topic": SENDS | READS | LOOKS}


@pytest.mark.parametrize("half", REFUSED)
async def test_half_of_what_a_code_needs_is_not_enough(tmp_path: Path, half: str) -> None:
    """S39: Sending without reading, reading without sending, a topic without the group, a group without the topic."""
    async with guarded(tmp_path, HALVES_OF_AN_ACCOUNT) as cluster, signed_peer(cluster.broker.port) as peer:
        broker = Guarded(cluster, peer, await sent(peer, RIGHT, "TopicX"))
        account = Credentials(half, "secretOfOne")
        refused = {code for code in ALL if not broker.is_let_in(code, account, Client())}
    assert refused - FOR_ADMINS == REFUSED[half]


async def test_an_administrator_gets_everything(broker: Guarded) -> None:
    assert [code for code in ALL if not broker.is_let_in(code, ADMIN, Client())] == []


async def test_a_white_listed_address_gets_everything_but_administration(broker: Guarded) -> None:
    """S30."""
    client = Client(WHITE_HOST)
    assert {code for code in ALL if broker.is_let_in(code, None, client)} == set(ALL) - FOR_ADMINS
    assert [code for code in ALL if not broker.is_let_in(code, ADMIN, client)] == []
    assert {code for code in ALL if broker.is_let_in(code, LOW, client)} == set(ALL) - FOR_ADMINS


async def test_a_code_that_is_not_in_the_table_is_open_to_nobody(broker: Guarded) -> None:
    for account, client in ((ADMIN, Client()), (None, Client(WHITE_HOST))):
        assert not broker.is_let_in(9999, account, client)


async def test_unknown_codes_are_answered_and_end_the_connection_of_who_has_no_account(broker: Guarded) -> None:
    """S30."""
    async with signed_peer(broker.cluster.broker.port) as stranger:
        for _ in range(32):
            assert (await stranger.ask(None, 9999)).code == 3
        with pytest.raises((EOFError, ConnectionError)):
            await stranger.ask(None, 9999)
    for _ in range(40):  # who has one may ask for what a newer broker would know
        assert (await broker.peer.ask(LOW, 9999)).code == 3


async def test_a_message_that_is_not_there_yet_is_refused_before_it_may_come(broker: Guarded) -> None:
    gate = broker.cluster.broker.access
    assert gate is not None
    for code, name in ((33, "offset"), (36, "offset"), (37, "commitLogOffset")):
        for text in ("999999999", "-1", "x", ""):
            request = RemotingCommand.request(code, {name: text, "group": "GroupX"})
            RIGHT.sign(request, Stamper())
            with pytest.raises(BrokerError) as refused:
                gate(Client(), request)
            assert refused.value.code in (1, 29)  # nothing there, or no offset at all


async def test_the_table_names_real_codes() -> None:
    assert all(isinstance(RequestCode(code), RequestCode) for code in PERMISSIONS)
