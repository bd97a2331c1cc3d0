"""Java's client over TLS: tags, SQL, and a message that it fails on until it is a dead-letter message."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.bench import rpc
from gantrymq import AdminClient
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.certificates import authority
from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.interop.grpc.flows import make_topics
from tests.interop.grpc.java_side import LONG_S, side
from tests.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
async def test_tags_sql_and_dead_letters_over_tls(tmp_path: Path) -> None:
    folder = authority()
    tls = {"tls.server.certPath": str(folder / "server.pem"), "tls.server.keyPath": str(folder / "server.key")}
    tls["tls.server.mode"] = "enforcing"
    tls["useTLS"] = "false"
    with LocalCluster(tmp_path / "cluster") as cluster:
        await make_topics(cluster.namesrv_address)
        async with AdminClient(cluster.namesrv_address) as admin:
            await admin.groups.create(SubscriptionGroupConfig("java-dead", retry_max_times=1))
        with (
            proxy_process(cluster.namesrv_address, tmp_path / "proxy.log", settings=tls) as (_, port),
            side(tmp_path, "filters", "Filters", f"127.0.0.1:{port}") as program,
        ):
            await until(lambda: bool(program.bodies("FAIL")), LONG_S)
            await until(lambda: rpc.max_offsets(cluster.broker_address, "%DLQ%java-dead", 1) == [1], LONG_S)
            program.stop()
            await until(lambda: program.out.read_text().endswith("DONE\n"), LONG_S)
    got = program.bodies("GOT")
    assert sorted(got) == sorted(
        [*(f"java-tag\tm{number}" for number in range(0, 12, 2)), "java-sql\tm3", "java-sql\tm5"]
    )
    assert program.bodies("FAIL")[:2] == ["m7\t1", "m7\t2"]
