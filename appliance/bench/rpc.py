"""Blocking requests to a broker or name server, one at a time, before and after a load."""

from __future__ import annotations

import socket

from gantrymq.errors import ConnectError, ResponseError
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.protocol import RemotingProtocol
from gantrymq.remoting.signature import Credentials

CALL_TIMEOUT_S = 10.0


def connect(address: str, *, timeout_s: float = CALL_TIMEOUT_S) -> socket.socket:
    """A connection to "host:port" with Nagle off. Raises ConnectError."""
    host, _, port = address.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), timeout_s)
    except OSError as exc:
        raise ConnectError(address, str(exc)) from exc
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def call(
    connection: socket.socket, request: RemotingCommand, credentials: Credentials | None = None
) -> RemotingCommand:
    """Send a request and return the response, whatever its code. Requests of the peer are ignored."""
    if credentials is not None:
        credentials.sign(request)
    return call_frame(connection, request.encode())


def call_frame(connection: socket.socket, frame: bytes | memoryview) -> RemotingCommand:
    """Send a frame that is encoded already and wait for the first answer: there must be no other call under way."""
    protocol = RemotingProtocol()
    try:
        connection.sendall(frame)
        while True:
            while (command := protocol.next_command()) is not None:
                if command.is_response:
                    return command
            data = connection.recv(1 << 18)
            if not data:
                raise ConnectError("peer", "closed before it answered")
            protocol.receive_data(data)
    except OSError as exc:
        raise ConnectError("peer", str(exc)) from exc


def ask(
    address: str,
    code: int,
    ext_fields: dict[str, str] | None = None,
    *,
    timeout_s: float = CALL_TIMEOUT_S,
    credentials: Credentials | None = None,
) -> RemotingCommand:
    """One request on a connection of its own. Raises ConnectError, and ResponseError for a code other than 0."""
    with connect(address, timeout_s=timeout_s) as connection:
        answer = call(connection, RemotingCommand.request(code, ext_fields), credentials)
    if answer.code != 0:
        raise ResponseError(answer.code, answer.remark, address=address)
    return answer


def registered_brokers(namesrv: str) -> set[str]:
    """Names of the brokers that the name server knows."""
    body = ask(namesrv, RequestCode.GET_BROKER_CLUSTER_INFO, timeout_s=2.0).body
    return set(fastjson.loads(body).get("brokerAddrTable") or ())


def registered_ports(namesrv: str) -> set[int]:
    """Ports of the brokers that the name server knows, masters and slaves."""
    body = ask(namesrv, RequestCode.GET_BROKER_CLUSTER_INFO, timeout_s=2.0).body
    brokers = fastjson.loads(body).get("brokerAddrTable") or {}
    addresses = [address for broker in brokers.values() for address in broker["brokerAddrs"].values()]
    return {int(address.rpartition(":")[2]) for address in addresses}


def create_topic(broker: str, topic: str, queue_count: int, credentials: Credentials | None = None) -> None:
    """Create `topic` on the broker at this address, readable and writable."""
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queue_count),
        "writeQueueNums": str(queue_count),
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    ask(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, fields, credentials=credentials)


def max_offsets(broker: str, topic: str, queue_count: int, credentials: Credentials | None = None) -> list[int]:
    """GET_MAX_OFFSET of every queue: how many messages each has ever got."""
    offsets = []
    with connect(broker) as connection:
        for queue_id in range(queue_count):
            fields = {"topic": topic, "queueId": str(queue_id)}
            answer = call(connection, RemotingCommand.request(RequestCode.GET_MAX_OFFSET, fields), credentials)
            if answer.code != 0:
                raise ResponseError(answer.code, answer.remark, address=broker)
            offsets.append(int(answer.ext_fields["offset"]))
    return offsets


def log_end(broker: str, credentials: Credentials | None = None) -> int:
    """Where a broker's commit log ends, as its figures say."""
    body = ask(broker, RequestCode.GET_BROKER_RUNTIME_INFO, credentials=credentials).body
    return int(fastjson.loads(body)["table"]["commitLogMaxOffset"])
