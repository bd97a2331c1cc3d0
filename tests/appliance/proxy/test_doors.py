"""The door on libnghttp2 answers byte for byte as the one on grpclib does, to calls and to what is none."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from h2 import events
from h2.connection import H2Connection
from h2.errors import ErrorCodes

from appliance.proxy import controller
from appliance.proxy.protocol.definition_pb2 import Resource
from appliance.proxy.protocol.service_pb2 import HeartbeatRequest, QueryRouteRequest, ReceiveMessageRequest
from appliance.proxy.service import SERVICE
from gantrymq import AdminClient
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance.proxy.proxies import ENDPOINTS, proxied, require_compiled_door
from tests.faults.grpc.hostile_calls import UNCHECKED
from tests.waiting import WITHIN_S

Seen = list[Any]


def framed(message: Any, flag: int = 0) -> bytes:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return bytes((flag,)) + struct.pack(">I", len(data)) + data


def headers(call: str = "QueryRoute", **changed: str | None) -> list[tuple[str, str]]:
    wanted: dict[str, str | None] = {":method": "POST", ":scheme": "http", ":path": SERVICE + call, ":authority": "x"}
    wanted |= {"content-type": "application/grpc", "te": "trailers", "x-mq-client-id": "c"}
    wanted |= {name.replace("_", "-"): value for name, value in changed.items()}
    return [(name, value) for name, value in wanted.items() if value is not None]


ROUTE = framed(QueryRouteRequest(topic=Resource(name="orders"), endpoints=ENDPOINTS))
LONG = framed(HeartbeatRequest(group=Resource(name="x" * 300_000)))
ASKED: dict[str, tuple[list[tuple[str, str]], bytes]] = {
    "a call": (headers(), ROUTE),
    "a call with the subtype": (headers(content_type="application/grpc+proto"), ROUTE),
    "a topic that is not there": (
        headers(),
        framed(QueryRouteRequest(topic=Resource(name="nowhere"), endpoints=ENDPOINTS)),
    ),
    "a long request": (headers("Heartbeat"), LONG),
    "no client id": (headers(x_mq_client_id=None), ROUTE),
    "an answer of many messages": (headers("ReceiveMessage"), framed(ReceiveMessageRequest(batch_size=1))),
    "a call that is not built": (headers("PullMessage"), framed(b"")),
    "a call that is not there": (headers("Dance"), ROUTE),
    "no POST": ([(":method", "GET"), *headers()[1:]], b""),
    "no content type": (headers(content_type=None), ROUTE),
    "another content type": (headers(content_type="text/html"), ROUTE),
    "no trailers wanted": (headers(te=None), ROUTE),
    "a time that is none": (headers(grpc_timeout="soon"), ROUTE),
    "no message": (headers(), b""),
    "half a prefix": (headers(), b"\x00\x00"),
    "half a message": (headers(), ROUTE[:-3]),
    "a compressed message": (headers(), framed(b"abc", flag=1)),
    "a message that is too long": (headers("SendMessage"), b"\x00\xff\xff\xff\xff"),
    "a message that is none": (headers(), framed(b"\xff" * 9)),
    "too many headers": (headers(x_more="v" * 40_000), ROUTE),
}
MALFORMED: dict[str, tuple[list[tuple[str, str]], bytes]] = {
    "a header in capitals": ([*headers(), ("X-Upper", "v")], ROUTE),
    "a header with a line break": ([*headers(), ("x-bad", "a\r\nb: c")], ROUTE),
    "no path": ([pair for pair in headers() if pair[0] != ":path"], ROUTE),
}


async def answer(port: int, head: list[tuple[str, str]], body: bytes) -> Seen:
    """What comes back on the stream, or how the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    h2 = H2Connection(config=UNCHECKED)
    h2.initiate_connection()
    seen: Seen = []
    waiting = memoryview(body)
    try:
        while not any(isinstance(event, events.RemoteSettingsChanged) for event in h2.receive_data(await some(reader))):
            pass
        h2.send_headers(1, head, end_stream=not body)
        while True:
            while waiting and (room := min(h2.local_flow_control_window(1), 16_384, len(waiting))) > 0:
                h2.send_data(1, bytes(waiting[:room]), end_stream=room == len(waiting))
                waiting = waiting[room:]
            writer.write(h2.data_to_send())
            data = await some(reader)
            if not data:
                return [*seen, "closed"]
            for event in h2.receive_data(data):
                seen += told(event)
                if isinstance(event, events.StreamEnded | events.StreamReset | events.ConnectionTerminated):
                    return joined(seen)
    finally:
        writer.close()


async def some(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(65_536), WITHIN_S)


def told(event: events.Event) -> Seen:
    if isinstance(event, events.ResponseReceived | events.TrailersReceived):
        return [list(event.headers)]
    if isinstance(event, events.DataReceived):
        return [event.data]
    if isinstance(event, events.StreamReset):
        return [("reset", ErrorCodes(event.error_code).name)]
    return [("ended", event.error_code)] if isinstance(event, events.ConnectionTerminated) else []


def joined(seen: Seen) -> Seen:
    """DATA frames together: where they are cut is no matter."""
    whole: Seen = []
    for part in seen:
        if isinstance(part, bytes) and whole and isinstance(whole[-1], bytes):
            whole[-1] += part
        else:
            whole.append(part)
    return whole


async def answers(folder: Path) -> dict[str, Seen]:
    async with proxied(folder) as cluster:
        await cluster.client.call("QueryRoute", topic=Resource(name="orders"))
        async with AdminClient(cluster.cluster.namesrv_address) as admin:
            await admin.topics.create(TopicConfig("orders", 4, 4))
        found = {}
        for what, asked in (ASKED | MALFORMED).items():
            found[what] = await answer(cluster.proxy.port, *asked)
        return found


async def test_both_doors_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiled_door()
    monkeypatch.setattr("appliance.proxy.receiving.timestamp", lambda ms: Timestamp(seconds=1))
    compiled = await answers(tmp_path / "compiled")
    monkeypatch.setattr(controller, "compiled_http2", lambda: (None, "left out"))
    plain = await answers(tmp_path / "plain")
    assert {what: compiled[what] for what in ASKED} == {what: plain[what] for what in ASKED}
    for what in MALFORMED:  # grpclib's library ends the connection, libnghttp2 the call
        assert (compiled[what], plain[what]) == ([("reset", "PROTOCOL_ERROR")], [("ended", ErrorCodes.PROTOCOL_ERROR)])
