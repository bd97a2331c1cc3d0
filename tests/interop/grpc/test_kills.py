"""kill -9 of Java's client, of the proxy and of the broker amid traffic: what was acknowledged comes, in order.

At least once: a message comes again when its acknowledgement was lost, so order is that of first deliveries.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.interop.grpc.flows import make_topics
from tests.interop.grpc.java_side import LONG_S, side
from tests.waiting import until

pytestmark = pytest.mark.slow

GROUPS = 3


@pytest.mark.timeout(1500)
async def test_kills_amid_traffic_lose_nothing_and_keep_order(tmp_path: Path) -> None:
    log = tmp_path / "proxy.log"
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(tmp_path / "cluster"))
        await make_topics(cluster.namesrv_address)
        proxy, port = stack.enter_context(proxy_process(cluster.namesrv_address, log))
        sender = stack.enter_context(side(tmp_path, "sender", "Steady", "send", f"127.0.0.1:{port}"))
        with side(tmp_path, "one", "Steady", "receive", f"127.0.0.1:{port}", "steady") as one:
            await one.goes_on()
        two = stack.enter_context(side(tmp_path, "two", "Steady", "receive", f"127.0.0.1:{port}", "steady"))
        await two.goes_on()
        proxy.kill()
        proxy.wait()
        stack.enter_context(proxy_process(cluster.namesrv_address, log, port))
        await two.goes_on()
        cluster.kill_broker()
        cluster.start_broker()
        await two.goes_on()
        sender.stop()
        await until(lambda: sender.out.read_text().endswith("DONE\n"), LONG_S)
        sent = sender.bodies("SENT")
        await until(lambda: {*one.bodies("GOT"), *two.bodies("GOT")} >= {*sent}, LONG_S)
        came = list(dict.fromkeys([*one.bodies("GOT"), *two.bodies("GOT")]))
    for group in range(GROUPS):
        mine = [body for body in came if int(body[1:]) % GROUPS == group]
        assert mine == [f"f{number}" for number in range(group, len(sent), GROUPS)]
