"""Pages that change something say how a shell does the same."""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable

from dashboard.cluster.gateway import Gateway
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.dashboard.conftest import Client

Topic = Callable[..., Awaitable[str]]


async def test_a_form_stands_beside_its_lines_for_a_shell(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    client, topic = await log_in("admin"), await make_topic("in-a-shell", queues=3)
    await (await gateway.calls.admin()).groups.create(SubscriptionGroupConfig("in-a-shell-group"))
    config = {"do": "look", "set.fileReservedTime": "49"}
    for answer, admin, method, address in (
        (await client.get("/topics/create"), "topics create orders -q 8 --perm rw", "POST", "topics"),
        (await client.get(f"/topic/{topic}/settings"), f"topics set {topic} -q 3 --perm rw", "PUT", f"topics/{topic}"),
        (await client.get(f"/topic/{topic}/delete"), f"topics delete {topic}", "DELETE", f"topics/{topic}"),
        (
            await client.get("/group/in-a-shell-group/delete"),
            "groups delete in-a-shell-group",
            "DELETE",
            "groups/in-a-shell-group",
        ),
        (
            await client.post("/broker/broker-a/config", config),
            "config set fileReservedTime=49 -b broker-a",
            "PUT",
            "brokers/broker-a/config",
        ),
    ):
        page = html.unescape(answer.content.decode())
        assert f"gantry admin {admin} -n " in page, admin
        assert f"curl -X {method} " in page and f"http://testserver/api/v1/{address}" in page, admin
