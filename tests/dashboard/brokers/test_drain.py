"""A broker is drained from its page and by REST, and comes back."""

from __future__ import annotations

import pytest

from dashboard.brokers.draining import drains
from dashboard.cluster.gateway import Gateway
from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from gantrymq import Message, Producer
from gantrymq.errors import GantryError
from tests.dashboard.conftest import Client, api_for

PLACE = "/brokers/broker-a/drain"


async def test_rest_drains_a_broker_and_puts_it_back(gateway: Gateway, log_in: Client) -> None:
    await log_in("admin")
    api = await api_for(await User.objects.aget(username="admin"), "admin")
    status, told = await api.call("get", PLACE)
    assert (status, told["phase"], told["is_only_master"]) == (200, "off", True)
    status, told = await api.call("post", PLACE, {"routes_s": 0})
    assert (status, told["phase"]) == (200, "routes")
    async with Producer(gateway.namesrv, group="drain-test") as producer:
        await drains.step()
        _, told = await api.call("get", PLACE)
        assert (told["phase"], told["groups"]) == ("drained", {})
        with pytest.raises(GantryError):
            await producer.send(Message("Drained", b"1"))
        await drains.step()  # it is over: nothing is told to the name servers any more
        status, told = await api.call("delete", PLACE)
        assert (status, told["phase"]) == (200, "off")
        await producer.send(Message("Drained", b"2"))
    noted = [(item.action, item.way) async for item in AuditEntry.objects.filter(target="broker-a")]
    assert ("drain of a broker started", "rest") in noted and ("drain of a broker undone", "rest") in noted


async def test_the_page_has_the_buttons_and_says_how_far_it_is(gateway: Gateway, log_in: Client) -> None:
    client = await log_in(Role.ADMIN)
    operator = await log_in(Role.OPERATOR)
    assert (await operator.post("/broker/broker-a/drain/start")).status_code == 403
    page = (await client.get("/broker/broker-a/drain")).content.decode()
    assert "In service" in page and "It is the only master" in page and "gantry admin drain broker-a" in page
    assert "/broker/broker-a/drain/start" in page
    assert "/broker/broker-a/drain/undo" in page  # of one whose dashboard was restarted while producers left
    assert (await client.post("/broker/broker-a/drain/start")).status_code == 302
    page = (await client.get("/broker/broker-a/drain")).content.decode()
    assert "Producers are leaving" in page and "/drain/undo" in page and "/drain/start" not in page
    assert (await client.post("/broker/broker-a/drain/undo")).status_code == 302
    assert "In service" in (await client.get("/broker/broker-a/drain")).content.decode()


async def test_a_broker_that_is_not_there_is_not_drained(gateway: Gateway, log_in: Client) -> None:
    await log_in("admin")
    api = await api_for(await User.objects.aget(username="admin"), "admin")
    assert (await api.call("post", "/brokers/broker-z/drain", {}))[0] == 404
    assert (await api.call("post", PLACE, {"routes_s": 601}))[0] == 422
