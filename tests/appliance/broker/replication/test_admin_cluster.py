"""`gantry admin cluster` shows a master's slaves, and what a slave does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from appliance.draining.left import look
from gantrymq import AdminClient
from tests.appliance.broker.replication.pair import MASTER, STORE, caught_up, send, slave_of
from tests.appliance.cli.running_gantry import run_gantry
from tests.harness import serving
from tests.waiting import until


async def test_slaves_are_a_column_of_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:

        async def shown() -> list[str]:
            ran = await asyncio.to_thread(run_gantry, capsys, "admin", "-n", cluster.namesrv_address, "cluster")
            assert ran.code == 0, ran.err
            return [line for line in ran.out.splitlines() if line.startswith("DefaultCluster")]

        assert (await shown())[0].endswith("none")
        await send(cluster, 1)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await until(lambda: slave.outer_api.registered == (1, 1))
            await caught_up(slave, cluster.broker)
            [known] = cluster.broker.slaves.slaves
            await until(lambda: cluster.broker.slaves.behind_bytes == known.messages_behind == 0)
            master_line, slave_line = await shown()
            assert "1 of 1 in sync, 0 B, 0 messages, 0 s behind, " in master_line
            assert slave_line.endswith("copying")
            async with slave_of(cluster, tmp_path / "second", broker_id=2) as second:
                await until(lambda: second.outer_api.registered == (1, 1))
                await until(lambda: [each.in_sync for each in cluster.broker.slaves.slaves] == [True, True])
                master_line = (await shown())[0]
                assert "2 of 2 in sync; " in master_line
                for name in ("broker-a:1", "broker-a:2"):
                    assert f"{name} in sync, 0 B, " in master_line
                async with AdminClient(cluster.namesrv_address) as admin:
                    left = await look(admin, cluster.broker_address)
                assert left.slaves == {"broker-a:1": 0, "broker-a:2": 0}
                async with AdminClient("127.0.0.1:9") as admin:  # no name server, but the broker answers
                    left = await look(admin, cluster.broker_address)
                assert left.slaves == {each.address: 0 for each in cluster.broker.slaves.slaves}
        await until(lambda: not cluster.broker.slaves.slaves)
        assert (await shown())[0].endswith("gone: 127.0.0.1")
