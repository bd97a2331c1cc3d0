"""What brokers are told of a proxy's clients, in its heartbeats: so that tools see them beside all other clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from appliance.acl.account import Account
from appliance.proxy.callers import whole_name
from appliance.proxy.clients import Client
from appliance.proxy.protocol.definition_pb2 import FilterType
from gantrymq.remoting.bodies import ProxiedClient, ProxyReport, SubscriptionData

CLIENTS_TOLD_MAX = 5_000  # of one account: about a megabyte each 30 s
TOPICS_TOLD_MAX = 32  # of one client
EXPRESSION_CHARS_MAX = 256
NODE_JS = frozenset({"HTTP", "NODE_JS"})  # as Node.js's client calls itself


def report_of(address: str, clients: Iterable[Client], account: Account | None) -> ProxyReport:
    """The clients of one account; those whose group the account may no longer use are left out."""
    told = [
        _told(client) for client in clients if account is None or not client.group or account.may_group(client.group)
    ]
    return ProxyReport(address, told[:CLIENTS_TOLD_MAX])


def _told(client: Client) -> ProxiedClient:
    wanted = {each.topic: f"{each.expression_type} {each.sub_string}" for each in subscriptions_of(client)}
    topics = sorted(map(whole_name, client.settings.publishing.topics))[:TOPICS_TOLD_MAX]
    language = "NODE_JS" if client.language in NODE_JS else client.language
    return ProxiedClient(client.client_id, client.address, language, client.version, client.group, wanted, topics)


def subscriptions_of(client: Client) -> Iterator[SubscriptionData]:
    """What it wants, within bounds."""
    for entry in client.settings.subscription.subscriptions[:TOPICS_TOLD_MAX]:
        kind = "SQL92" if entry.expression.type == FilterType.SQL else "TAG"
        expression = entry.expression.expression[:EXPRESSION_CHARS_MAX] or "*"
        yield SubscriptionData(whole_name(entry.topic), expression, expression_type=kind)
