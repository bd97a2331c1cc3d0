"""How a broker's role changes what its handlers do.

A slave refuses what only a master may do, and serves all else: pulls, queries, heartbeats, offsets. A SYNC_MASTER
answers changes of topics and groups when the slaves in sync have them, too, as it does with messages: after
slaveTimeout ms at the latest; the change holds on the master in any case, and the log says who has not confirmed it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NoReturn

from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import Answer, Handler, Route
from gantrymq.remoting.codes import RequestCode as Code
from gantrymq.remoting.codes import ResponseCode

_NO_MESSAGES = (
    ResponseCode.SERVICE_NOT_AVAILABLE,
    "service not available now: this broker is a slave, messages go to its master",
)
_NO_POPS = (
    ResponseCode.SERVICE_NOT_AVAILABLE,
    "service not available now: this broker is a slave, its master leases messages",
)
_NO_CHANGES = (
    ResponseCode.SYSTEM_ERROR,
    "Can't modify topic or subscription group from slave broker, please execute it from master broker.",
)
_NOT_STORED = (ResponseCode.SYSTEM_ERROR, "SERVICE_NOT_AVAILABLE: this broker is a slave")
_REFUSALS = {
    Code.SEND_MESSAGE: _NO_MESSAGES,
    Code.SEND_MESSAGE_V2: _NO_MESSAGES,
    Code.SEND_BATCH_MESSAGE: _NO_MESSAGES,
    Code.CONSUMER_SEND_MSG_BACK: _NOT_STORED,
    Code.SEND_REPLY_MESSAGE: _NOT_STORED,
    Code.SEND_REPLY_MESSAGE_V2: _NOT_STORED,
    Code.RESUME_CHECK_HALF_MESSAGE: _NOT_STORED,
    Code.END_TRANSACTION: (
        ResponseCode.SLAVE_NOT_AVAILABLE,
        "Message store is slave mode, so end transaction is forbidden.",
    ),
    Code.RECALL_MESSAGE: (ResponseCode.SLAVE_NOT_AVAILABLE, "recall failed, broker service not available"),
    Code.POP_MESSAGE: _NO_POPS,
    Code.ACK_MESSAGE: _NO_POPS,
    Code.BATCH_ACK_MESSAGE: _NO_POPS,
    Code.CHANGE_MESSAGE_INVISIBLETIME: _NO_POPS,
    Code.NOTIFICATION: _NO_POPS,
    Code.QUERY_ASSIGNMENT: _NO_POPS,
    Code.SET_MESSAGE_REQUEST_MODE: _NO_CHANGES,
    Code.UPDATE_AND_CREATE_TOPIC: _NO_CHANGES,
    Code.UPDATE_AND_CREATE_TOPIC_LIST: _NO_CHANGES,
    Code.DELETE_TOPIC_IN_BROKER: _NO_CHANGES,
    Code.CLEAN_UNUSED_TOPIC: _NO_CHANGES,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: _NO_CHANGES,
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: _NO_CHANGES,
    Code.DELETE_SUBSCRIPTIONGROUP: _NO_CHANGES,
}
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


def for_slave(routes: Mapping[int, Route]) -> dict[int, Route]:
    """The routes of a slave: what would store or change something is refused, in the lane it has on a master."""
    return {
        code: Route(_refuse(*_REFUSALS[Code(code)]), route.lane) if code in _REFUSALS else route
        for code, route in routes.items()
    }


def _refuse(code: ResponseCode, remark: str) -> Handler:
    def refuse(connection: ServerConnection, request: Any) -> NoReturn:
        raise BrokerError(code, remark)

    return refuse


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
