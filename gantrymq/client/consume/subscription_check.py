"""Asking a broker whether it understands the SQL conditions of a consumer."""

from __future__ import annotations

from collections.abc import Iterable

from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.subscription import SQL92
from gantrymq.errors import RouteNotFound
from gantrymq.remoting.bodies import CheckClientRequestBody, SubscriptionData
from gantrymq.remoting.codes import RequestCode


async def check_conditions(session: ClientSession, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
    """Have the conditions compiled: a mistake should show now, not as a pull that fails for ever.

    Raises ResponseError when a broker refuses one. A topic that nobody knows yet is left out, as in the Java client: no
    broker can be asked, and its first message may be on its way.
    """
    for subscription in subscriptions:
        if subscription.expression_type != SQL92:
            continue
        try:
            route = await session.routes.to_read(subscription.topic)
        except RouteNotFound:
            continue
        found = session.routes.address_to_read(route.readable[0].broker_name) if route.readable else None
        if found is not None:
            body = CheckClientRequestBody(session.client_id, group, subscription).to_json()
            await session.calls.call(found[0], RequestCode.CHECK_CLIENT_CONFIG, None, body)
