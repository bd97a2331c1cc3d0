"""A group whose offset of one queue a test commits by hand, and looks up at each member."""

from __future__ import annotations

from appliance.bench import rpc
from appliance.bench.frames import send_fields
from gantrymq.errors import GantryError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.faults.kit.replicas import TOPIC
from tests.harness import LocalCluster
from tests.waiting import wait_until

FIELDS = {"consumerGroup": "Committing", "topic": TOPIC, "queueId": "0"}


def answered(address: str, code: RequestCode, fields: dict[str, str], body: bytes = b"") -> dict[str, str] | None:
    """The fields of a good answer; None without one."""
    try:
        with rpc.connect(address) as connection:
            answer = rpc.call(connection, RemotingCommand.request(code, fields, body))
    except GantryError:
        return None
    return dict(answer.ext_fields) if answer.code == ResponseCode.SUCCESS else None


def commit(master: LocalCluster, offset: int) -> None:
    fields = FIELDS | {"commitOffset": str(offset)}
    wait_until(lambda: answered(master.broker_address, RequestCode.UPDATE_CONSUMER_OFFSET, fields) is not None)


def store(master: LocalCluster, count: int) -> None:
    """At least so many messages in that queue: offsets beyond its end are of no use to others.

    Each is sent until it is acknowledged: a starved slave may leave the in-sync set for a moment.
    """
    fields = send_fields("Storing", TOPIC, 0, "")
    for _ in range(count):
        wait_until(lambda: answered(master.broker_address, RequestCode.SEND_MESSAGE_V2, fields, b"one") is not None)


def offset_at(member: LocalCluster) -> int | None:
    fields = answered(member.broker_address, RequestCode.QUERY_CONSUMER_OFFSET, FIELDS)
    return None if fields is None else int(fields["offset"])
