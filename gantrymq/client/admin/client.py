"""AdminClient: what operators and the dashboard ask of name servers and brokers.

One part for each resource: `admin.topics.create(config)`. A call whose name ends in _at takes the address of one
broker first, as cluster.info or topics.route gave it, and speaks to that broker alone; so do the calls of `brokers`.
The others find the brokers themselves and speak to every one that matters. Questions to the name server go to whichever
answers, changes to all of them. All raise ConnectError, RequestTimeout or ResponseError (code and remark of the peer);
PartlyDone when some of several did not do it.

Each part stands in the module of its name; what calls over several brokers return stands in results.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

from gantrymq.client.admin.accounts import AccountAdmin
from gantrymq.client.admin.brokers import BrokerAdmin
from gantrymq.client.admin.calls import AdminCalls, AdminKeywords
from gantrymq.client.admin.clients import ClientAdmin
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.groups import GroupAdmin
from gantrymq.client.admin.messages import MessageAdmin
from gantrymq.client.admin.name_servers import NameServerAdmin
from gantrymq.client.admin.offsets import OffsetAdmin
from gantrymq.client.admin.succession import SuccessionAdmin
from gantrymq.client.admin.topics import TopicAdmin


class AdminClient:
    """Administers a cluster: `async with AdminClient("host:port;host:port") as admin`.

    timeout_s: of one request, 5.0; credentials, tls and serialize_type as of a producer. calls: single requests, for
    what the parts have no method for.
    """

    def __init__(self, name_servers: str | Sequence[str], **keywords: Unpack[AdminKeywords]) -> None:
        self.calls: AdminCalls = AdminCalls(name_servers, **keywords)
        self.cluster: ClusterAdmin = ClusterAdmin(self.calls)
        self.brokers: BrokerAdmin = BrokerAdmin(self.calls)
        self.name_servers: NameServerAdmin = NameServerAdmin(self.calls)
        self.clients: ClientAdmin = ClientAdmin(self.calls)
        self.topics: TopicAdmin = TopicAdmin(self.calls, self.cluster, self.brokers, self.name_servers)
        self.groups: GroupAdmin = GroupAdmin(self.calls, self.cluster, self.topics, self.clients)
        self.offsets: OffsetAdmin = OffsetAdmin(self.calls, self.cluster, self.topics, self.groups, self.clients)
        self.messages: MessageAdmin = MessageAdmin(self.calls, self.cluster, self.topics, self.groups, self.offsets)
        self.accounts: AccountAdmin = AccountAdmin(self.calls)
        self.succession: SuccessionAdmin = SuccessionAdmin(self.calls, self.cluster, self.brokers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Does nothing: connections are opened by the first calls that need them."""

    async def close(self) -> None:
        """Close all connections."""
        await self.calls.remoting.close()

    def abandon(self) -> None:
        """Forget the connections, in a child that a fork made: they are the parent's, whose loop is not here."""
        self.calls.remoting.abandon()
