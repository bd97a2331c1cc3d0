"""The one door to the cluster. Pages, REST and sockets ask here, so they agree; brokers are asked over the wire only.

Every call has a deadline. Brokers are asked side by side, and one that fails becomes a `Trouble` beside the others'
answers: a dead broker never fails a page. A call that had to reach a particular broker raises a `GatewayError`.

The calls stand in files of their own: calls (the client, the brokers), on it brokers and topics, on
that messages and groups.
"""

from __future__ import annotations

from dashboard.cluster.brokers import ConfigCalls
from dashboard.cluster.groups import GroupCalls
from dashboard.cluster.messages import MessageCalls


class Gateway(MessageCalls, GroupCalls, ConfigCalls):
    """All calls to one cluster: `Gateway("host:port;host:port")`."""


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
