"""Which id a demoted master takes: the successor's, and none that a slave has which is down."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from appliance.broker.epochs.members import ID_BY_CHANCE_MIN, Members
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.bodies import BrokerData, ClusterInfo
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server

NAME = BrokerConfig().broker_name


@contextlib.asynccontextmanager
async def members(
    before: str | None, others: dict[int, str], *, is_damaged: bool = False
) -> AsyncIterator[tuple[Members, str]]:
    """Of a broker whose new master had that id as a slave, and its address. None: the master is silent. others: what
    the name server has beside it."""

    def answer(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code == RequestCode.GET_BROKER_CLUSTER_INFO:
            table = {NAME: BrokerData("c", NAME, {**others, 0: master})}
            body = b"{" if is_damaged else ClusterInfo(table, {"c": [NAME]}).to_json()
            writer.write(request.reply(body=body).encode())
        else:
            writer.write(request.reply(body=KVTable({"slaveIdBefore": before or ""}).to_json()).encode())

    async with scripted_server(answer) as server:
        master = closed_port() if before is None else server.address
        yield Members(BrokerConfig(namesrv_addresses=server.address)), master


@pytest.mark.parametrize(
    ("before", "others", "expected"),
    [("2", {}, 2), ("2", {1: "other:1"}, 2), ("0", {1: "other:1"}, 2), ("0", {}, 1)],
    ids=["it had one", "it had one, and there is another", "it had none", "it had none, and is alone"],
)
async def test_a_demoted_master_takes_the_id_that_its_successor_had(
    before: str, others: dict[int, str], expected: int
) -> None:
    async with members(before, others) as (asked, master):
        assert await asked.free_id(master) == expected


async def test_a_row_that_the_successor_left_as_a_slave_is_not_taken() -> None:
    async with members("1", {}) as (asked, master), members("1", {1: master}) as (late, _):
        assert await asked.free_id(master) == 1
        assert await late.free_id(master) == 1


@pytest.mark.parametrize("is_damaged", [False, True])
async def test_without_an_answer_it_takes_none_that_a_slave_which_is_down_may_have(*, is_damaged: bool) -> None:
    async with members("0" if is_damaged else None, {}, is_damaged=is_damaged) as (asked, master):
        assert await asked.free_id(master) >= ID_BY_CHANCE_MIN
