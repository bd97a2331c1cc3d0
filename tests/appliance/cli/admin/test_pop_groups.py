"""`gantry admin groups leases | mode | lag` of a group that pops, and `clients list` with what a proxy reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.__main__ import main
from gantrymq.remoting.bodies import HeartbeatData, ProducerData, ProxiedClient, ProxyReport
from gantrymq.remoting.codes import RequestCode
from tests.appliance.broker.pop.popper import popping
from tests.appliance.cli.running_gantry import Ran
from tests.harness import serving


async def test_a_shell_shows_what_is_in_flight_and_changes_the_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:

        async def gantry(*words: str) -> Ran:
            code = await asyncio.to_thread(main, ["admin", *words, "-n", cluster.namesrv_address])
            captured = capsys.readouterr()
            return Ran(code, captured.out, captured.err)

        for number in range(3):
            await popper.send(b"%d" % number, UNIQ_KEY=f"id-{number}")
        assert (await gantry("groups", "leases", "no-such")).code == 1
        assert (await gantry("groups", "mode", "no-such", "orders", "POP", "--yes")).code == 1
        assert (await gantry("groups", "create", "g", "--order", "no")).code == 0
        assert "MODE" not in (await gantry("groups", "show", "g")).out
        assert "g pops no topic now" in (await gantry("groups", "leases", "g")).out
        await popper.pop(maxMsgNums=2, clientId="me@1")
        shown = await gantry("groups", "leases", "g")
        assert shown.code == 0 and "id-1" in shown.out and "me@1" in shown.out and "POP" in shown.out
        assert "2 in flight, the oldest 1 shown" in (await gantry("groups", "leases", "g", "--count", "1")).out
        assert (await gantry("groups", "leases", "g", "--json")).json["broker-a"]["total"] == 2
        shown = await gantry("groups", "show", "g")
        assert shown.rows[1][5:] == ["no", "2"] and ["orders", "broker-a", "POP"] in shown.rows
        assert (await gantry("groups", "lag", "g", "--json")).json["queues"][0]["inFlight"] == 2
        asked = await gantry("groups", "mode", "g", "orders", "PULL", "--dry-run")
        assert "g consumes orders by pulling at broker-a" in asked.out and cluster.broker.pop.modes.pops("orders", "g")
        assert (await gantry("groups", "mode", "g", "orders", "PULL", "--yes")).code == 0
        assert (await popper.pop_answer()).code == 16, "it pulls now"
        assert "PULL" in (await gantry("groups", "leases", "g")).out


async def test_clients_behind_a_proxy_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(tmp_path) as cluster, popping(cluster.broker_address) as popper:
        told = ProxiedClient("h@1", "10.0.0.9", "GO", "5.1.4", "readers", {"orders": "TAG *"})
        publisher = ProxiedClient("h@2", "10.0.0.8", "JAVA", "5.2.0", topics=["orders"])
        report = ProxyReport("10.0.0.1:8081", [told, publisher])
        beat = HeartbeatData("proxy@1", producer_data_set=[ProducerData("orders")], proxy=report)
        assert (await popper.ask(RequestCode.HEART_BEAT, {}, beat.to_json())).code == 0
        code = await asyncio.to_thread(main, ["admin", "clients", "list", "-n", cluster.namesrv_address])
        printed = capsys.readouterr().out
        line = next(line for line in printed.splitlines() if line.startswith("h@1"))
        assert code == 0 and "broker-a by proxy 10.0.0.1:8081" in line and "GO 5.1.4" in line and "readers" in line
        assert await asyncio.to_thread(main, ["admin", "producers", "-n", cluster.namesrv_address]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("orders")]
        assert "h@2" in line and "10.0.0.8" in line, "not the proxy"
