"""The dashboard's only way to the cluster. Pages, REST and sockets ask here, so they agree; over the wire only.

Every call has a deadline. Brokers are asked side by side, and one that fails becomes a `PartialFailure` beside the
answers of the others: a dead broker never fails a page. A call that had to reach one broker raises a `GatewayError`.

It has a part for each resource, in the module of its name; what they share is in calls.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dashboard.cluster.broker_requests import BrokerCalls
from dashboard.cluster.calls import ClusterCalls
from dashboard.cluster.group_requests import GroupCalls
from dashboard.cluster.message_fate import MessageFate
from dashboard.cluster.message_lookup import MessageLookup
from dashboard.cluster.message_requests import MessageCalls
from dashboard.cluster.message_search import MessageSearch
from dashboard.cluster.succession import SuccessionCalls
from dashboard.cluster.topic_requests import TopicCalls
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig


class Gateway:
    """All calls to one cluster: `Gateway("host:port;host:port")`."""

    def __init__(
        self,
        namesrv: str,
        *,
        tls: TlsConfig | None = None,
        credentials: Credentials | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.namesrv = namesrv
        self.calls = ClusterCalls(namesrv, tls, credentials, clock)
        self.brokers = BrokerCalls(self.calls)
        self.topics = TopicCalls(self.calls)
        self.groups = GroupCalls(self.calls)
        self.messages = MessageCalls(self.calls, self.topics)
        self.succession = SuccessionCalls(self.calls)
        self.fate = MessageFate(self.calls, self.messages)
        self.search = MessageSearch(self.calls)
        self.lookup = MessageLookup(self.messages, self.search)

    async def close(self) -> None:
        """Close the connections; the next call opens them again."""
        await self.calls.close()


_gateway: Gateway | None = None


def gateway() -> Gateway:
    """The process's gateway, to the appliance's own name server."""
    global _gateway
    if _gateway is None:
        from django.conf import settings

        appliance = settings.APPLIANCE
        _gateway = Gateway(
            appliance.namesrv_address, tls=appliance.client_tls, credentials=appliance.client_credentials
        )
    return _gateway


def use_gateway(instance: Gateway | None) -> None:
    """Replace the process's gateway; tests point it at their own cluster."""
    global _gateway
    _gateway = instance
