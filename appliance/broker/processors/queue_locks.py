"""Locks of ordered consumption: a client of a group locks queues (41) and unlocks them (42).

A client asks for all its queues of this broker at once, each 20 s. A few are answered at once; thousands are read,
locked and written in slices, so that others have a turn in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any, Protocol

from appliance.broker.groups.client_connections import ClientConnections
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from appliance.errors import BrokerError
from appliance.process.cooperative import in_slices
from appliance.remoting.connection import ServerConnection
from appliance.remoting.request_body import read_document
from appliance.settings.roles import BrokerConfig
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import GROUP_CHARS_MAX
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import LockBatchRequest, LockBatchResponse
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand

QUEUES_A_SLICE = 256
CLIENT_ID_CHARS_MAX = 1024  # as of a heartbeat
NAME_CHARS_MAX = 255  # of a topic and of a broker


class QueueLockParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    client_connections: ClientConnections
    locks: RebalanceLockManager


def lock_queues(
    parts: QueueLockParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand | Awaitable[RemotingCommand]:
    """Lock queues for one client of a group; the answer lists those it holds."""
    wanted = _Wanted(request.body, parts.config.lock_queues_max)
    host = connection.remote_text.rpartition(":")[0]

    def lock(queues: list[MessageQueue]) -> list[Any]:
        if connection.is_closing:  # it left while this waited: its end has been handled already
            raise BrokerError(ResponseCode.SYSTEM_ERROR, "the connection is closed")
        parts.client_connections.note(wanted.client_id, connection)
        held = parts.locks.lock(wanted.group, wanted.client_id, queues, host=host)
        return LockBatchResponse(held).to_dict()["lockOKMQSet"]  # type: ignore[no-any-return]

    if len(wanted.entries) <= QUEUES_A_SLICE:
        return _held(request, lock(wanted.queues(wanted.entries)))

    async def lock_in_slices() -> RemotingCommand:
        members: list[Any] = []
        async for part in in_slices(wanted.parts(), 1):
            members += lock(wanted.queues(part))
        return _held(request, members)

    return lock_in_slices()


def unlock_queues(
    parts: QueueLockParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand | Awaitable[RemotingCommand]:
    """Release those of the queues that the client holds."""
    wanted = _Wanted(request.body, parts.config.lock_queues_max)
    if len(wanted.entries) <= QUEUES_A_SLICE:
        parts.locks.unlock(wanted.group, wanted.client_id, wanted.queues(wanted.entries))
        return request.reply()

    async def unlock_in_slices() -> RemotingCommand:
        async for part in in_slices(wanted.parts(), 1):
            parts.locks.unlock(wanted.group, wanted.client_id, wanted.queues(part))
        return request.reply()

    return unlock_in_slices()


class _Wanted:
    """The body of 41 and 42, its queues not read yet. Raises BodyError and BrokerError."""

    def __init__(self, body: bytes, queues_max: int) -> None:
        document = read_document(body)
        entries = document.pop("mqSet", None) if isinstance(document, dict) else None
        self.entries = entries if isinstance(entries, list) else []
        if len(self.entries) > queues_max:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER,
                f"the request names {len(self.entries)} queues: at most lockQueuesMax={queues_max}",
            )
        head = LockBatchRequest.from_dict(document if isinstance(entries, list | None) else {"mqSet": entries})
        self.group, self.client_id = head.consumer_group, head.client_id
        if len(self.group) > GROUP_CHARS_MAX or len(self.client_id) > CLIENT_ID_CHARS_MAX:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER,
                f"a group has at most {GROUP_CHARS_MAX} characters, a client's id {CLIENT_ID_CHARS_MAX}",
            )

    def parts(self) -> Iterator[list[Any]]:
        """Yield the entries, a slice at a time."""
        for at in range(0, len(self.entries), QUEUES_A_SLICE):
            yield self.entries[at : at + QUEUES_A_SLICE]

    @staticmethod
    def queues(entries: list[Any]) -> list[MessageQueue]:
        """Read some of the entries, each queue once."""
        queues = list(dict.fromkeys(LockBatchRequest.from_dict({"mqSet": entries}).mq_set))
        if any(max(len(queue.topic), len(queue.broker_name)) > NAME_CHARS_MAX for queue in queues):
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER, f"a topic and a broker's name have at most {NAME_CHARS_MAX} characters"
            )
        return queues


def _held(request: RemotingCommand, members: list[Any]) -> RemotingCommand:
    return request.reply(body=fastjson.dumps({"lockOKMQSet": members}))
