"""A member is asked to join its group in etcd."""

from __future__ import annotations

import asyncio

import pytest

from gantrymq import AdminClient
from gantrymq.errors import ConnectError
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.remoting.scripted import Script, ScriptedServer, scripted_server


def script(*, hangs_up: int) -> Script:
    def answer(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if len(server.requests) <= hangs_up:
            writer.close()
        else:
            writer.write(request.reply(ext_fields={"memberNumber": "1"}).encode())

    return answer


@pytest.mark.parametrize("hangs_up", [1, 2])
async def test_a_master_that_closes_its_connections_while_it_joins_is_asked_once_more(hangs_up: int) -> None:
    async with scripted_server(script(hangs_up=hangs_up)) as member, AdminClient("127.0.0.1:1") as admin:
        if hangs_up == 1:
            assert await admin.succession.join("gantry-a", member.address) == 1
        else:
            with pytest.raises(ConnectError):
                await admin.succession.join("gantry-a", member.address)
    assert [request.code for request in member.requests] == [RequestCode.JOIN_GROUP] * 2
