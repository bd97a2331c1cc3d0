"""Changes of topics and groups at a SYNC_MASTER: answered when the slaves in sync have them, too, as messages are.

For slaveTimeout ms at most; the change holds on the master all the same, and the log says who has not said so.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import Answer, Handler, Route
from gantrymq.remoting.codes import RequestCode as Code

CHANGES = frozenset(
    {
        Code.UPDATE_AND_CREATE_TOPIC,
        Code.UPDATE_AND_CREATE_TOPIC_LIST,
        Code.DELETE_TOPIC_IN_BROKER,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
        Code.DELETE_SUBSCRIPTIONGROUP,
    }
)


def for_sync_master(routes: Mapping[int, Route], until_told: Callable[[], Awaitable[None]]) -> dict[int, Route]:
    """The routes of a SYNC_MASTER. until_told: waits until the slaves in sync have both tables as they are now."""
    return {
        code: Route(_wait(route.handler, until_told), route.lane) if code in CHANGES else route
        for code, route in routes.items()
    }


def _wait(handler: Handler, until_told: Callable[[], Awaitable[None]]) -> Handler:
    async def change(connection: ServerConnection, request: Any) -> Answer:
        answer = handler(connection, request)
        if inspect.isawaitable(answer):
            answer = await answer
        await until_told()
        return answer

    return change
