"""Captured requests replayed: our name server must answer as the real 4.9.4 did."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

from appliance.namesrv.controller import NamesrvController
from appliance.namesrv.table import TABLE
from appliance.settings.roles import NamesrvConfig
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import Peer

FRAMES = Path(__file__).parents[2] / "golden" / "frames" / "namesrv.jsonl.gz"

# Bodies that differ for a good reason: lists of all topics (the capture left out some registrations), our own settings.
BODIES_DIFFER = {
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    RequestCode.GET_TOPICS_BY_CLUSTER,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,  # order
    RequestCode.GET_NAMESRV_CONFIG,
}
REMARKS_DIFFER = {RequestCode.UPDATE_NAMESRV_CONFIG}  # we say which keys mean nothing here


def facts(request: RemotingCommand, answer: RemotingCommand) -> dict[str, Any]:
    """What must be equal: code, names of the ext fields, remark, encoding, and the body's meaning."""
    body = None if request.code in BODIES_DIFFER or not answer.body else fastjson.loads(answer.body)
    return {
        "code": answer.code,
        "ext": sorted(answer.ext_fields),
        "remark": None if request.code in REMARKS_DIFFER else answer.remark or None,
        "encoding": answer.serialize_type,
        "has body": bool(answer.body),
        "body": body,
    }


async def test_captured_requests_are_answered_as_by_the_real_name_server(tmp_path: Path) -> None:
    peers: dict[str, Peer] = {}
    answered: set[int] = set()
    async with NamesrvController(NamesrvConfig(listen_port=0, kv_config_path=tmp_path / "kv.json")) as namesrv:
        for line in gzip.decompress(FRAMES.read_bytes()).splitlines():
            exchange = json.loads(line)
            if exchange["conn"] not in peers:
                peers[exchange["conn"]] = await Peer.connect(namesrv.port)
            peer = peers[exchange["conn"]]
            frame = bytes.fromhex(exchange["request"])
            request = RemotingCommand.decode(frame[4:])
            peer.write(frame)
            if request.is_oneway:
                # one-way requests have no answer to wait for; the next one on another connection must not overtake it
                await peer.ask(RequestCode.GET_NAMESRV_CONFIG)
                continue
            answer = await peer.read()
            assert answer.opaque == request.opaque
            if exchange["answer"] is None:  # the real one leaves unknown codes unanswered
                assert answer.code == 3
                continue
            expected = RemotingCommand.decode(bytes.fromhex(exchange["answer"])[4:])
            if answer.code == ResponseCode.INVALID_PARAMETER:  # there a topic or a namespace called "null"
                assert not {"topic", "key", "value"} & request.ext_fields.keys()
                assert expected.code in (ResponseCode.TOPIC_NOT_EXIST, ResponseCode.QUERY_NOT_FOUND, 1)
                continue
            assert facts(request, answer) == facts(request, expected), f"n={exchange['n']} {exchange['scenario']}"
            answered.add(request.code)
        await asyncio.gather(*(peer.close() for peer in peers.values()))
    assert answered == {int(row.code) for row in TABLE}
