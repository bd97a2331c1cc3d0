"""What a client that asks little does beside a flood, and how long each takes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from gantrymq.errors import ResponseError
from gantrymq.remoting.bodies import HeartbeatData, ProducerData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.faults.kit.flood import TOPIC
from tests.waiting import WITHIN_S


async def timed(
    action: Callable[[RemotingClient, str], Awaitable[None]], client: RemotingClient, address: str
) -> float:
    started = time.monotonic()
    await action(client, address)
    return time.monotonic() - started


async def store_one(client: RemotingClient, address: str) -> None:
    fields = dict.fromkeys("defghj", "0") | {"a": "P", "b": TOPIC, "c": "TBW102", "d": "4", "i": "", "k": "false"}
    answer = await client.invoke(
        address, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, b"x"), timeout_s=WITHIN_S
    )
    if answer.code != ResponseCode.SUCCESS:
        raise ResponseError(answer.code, answer.remark, address=address)


async def beat(client: RemotingClient, address: str) -> None:
    body = HeartbeatData("modest@1", [ProducerData("P")], []).to_json()
    answer = await client.invoke(
        address, RemotingCommand.request(RequestCode.HEART_BEAT, body=body), timeout_s=WITHIN_S
    )
    if answer.code != ResponseCode.SUCCESS:
        raise ResponseError(answer.code, answer.remark, address=address)
