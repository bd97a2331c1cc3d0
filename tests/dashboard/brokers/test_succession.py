"""The page that changes a broker's master: it shows what speaks against it, asks for the name, and does it once."""

from __future__ import annotations

import logging
import re
from html import unescape
from typing import Any

import pytest
from django.http import HttpResponse

from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from gantrymq.client.admin.promotion import NO_REGISTER
from tests.appliance.broker.replication.brokers import Group, copied_pair, is_master, is_slave, same_logs, send
from tests.appliance.broker.replication.pair import follower_of
from tests.dashboard.conftest import Client, api_for
from tests.waiting import until

PAGE = "/broker/broker-a/master"
HIDDEN = re.compile(r'<input type="hidden" name="(to|accept_loss|accept_unknown|seen)" value="([^"]*)">')
NAME = {"typed_name": "broker-a"}


def text_of(response: HttpResponse) -> str:
    return unescape(response.content.decode())


def hidden_of(response: HttpResponse) -> dict[str, str]:
    """What the form that does it would send, but for the name."""
    return dict(HIDDEN.findall(text_of(response)))


async def offered_to(client: Any) -> HttpResponse:
    """The page as soon as nothing speaks against the change: on a busy machine a slave hears of its master late."""
    shown: list[HttpResponse] = []

    async def is_offered() -> bool:
        shown[:] = [await client.get(PAGE)]
        return "seen" in hidden_of(shown[0])

    await until(is_offered)
    return shown[0]


def told_by(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What the page has logged: event and account."""
    own = [record for record in caplog.records if record.name == "dashboard.brokers.master_change"]
    return [(getattr(record, "event", ""), getattr(record, "username", "")) for record in own]


async def test_an_administrator_switches_over(brokers: Group, log_in: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "dashboard.brokers.master_change")
    client = await log_in()
    async with copied_pair(brokers, 3) as (one, two):
        shown = await offered_to(client)
        address, agreed = f"127.0.0.1:{two.port}", hidden_of(shown)
        assert shown.status_code == 200 and f"Switch over to {address}?" in text_of(shown)
        assert f"switchover broker-a --to {address}" in text_of(shown)
        assert "Without etcd, nothing coordinates epoch numbers" in text_of(shown)
        assert (await client.post(PAGE, agreed | {"typed_name": "broker-b"})).status_code == 422
        overtaken = await client.post(PAGE, agreed | NAME | {"seen": agreed["seen"] + "9"})
        assert overtaken.status_code == 422 and "It has changed since" in text_of(overtaken)
        assert is_master(one) and is_slave(two) and not told_by(caplog)
        done = await client.post(PAGE, agreed | NAME)
        assert done.status_code == 302, text_of(done)
        assert is_master(two) and is_slave(one)
        assert "is the master of broker-a in epoch 2" in text_of(await client.get(PAGE))
    assert told_by(caplog) == [("master_change_asked", "admin"), ("master_changed", "admin")]


async def test_a_promotion_is_refused_until_a_person_accepts_what_may_be_lost(brokers: Group, log_in: Client) -> None:
    client = await log_in()
    async with brokers.broker("two", broker_id=1) as two:
        async with brokers.broker("one") as one:
            await send(one, 3)
            await same_logs(one, two)
        follower_of(two.controller).ha_client.master_end += 1000  # as if it had heard of more than it got
        shown = await client.get(PAGE)
        assert "lacks 1,000 bytes" in text_of(shown) and not hidden_of(shown)
        assert f"promote broker-a --to 127.0.0.1:{two.port}" in text_of(shown)
        await client.post("/preferences/language", {"language": "zh-hans", "back": "/"})
        assert "缺少 1,000 字节" in text_of(await client.get(PAGE))
        await client.post("/preferences/language", {"language": "en", "back": "/"})
        slave = {"to": f"127.0.0.1:{two.port}"}
        assert (await client.post(PAGE, slave | NAME)).status_code == 422
        assert (await client.get(PAGE, {"accept_loss": "-1"})).status_code == 422
        assert is_slave(two)
        shown = await client.get(PAGE, {"accept_loss": "1000"})
        assert "--accept-loss 1000" in text_of(shown)
        assert "no slave was in sync" in text_of(shown) and not hidden_of(shown), "nobody knows what else it lacks"
        shown = await client.get(PAGE, {"accept_loss": "1000", "accept_unknown": "on"})
        assert "--accept-loss 1000 --accept-unknown" in text_of(shown)
        done = await client.post(PAGE, hidden_of(shown) | NAME)
        assert done.status_code == 302, text_of(done)
        assert is_master(two)
        after = text_of(await client.get(PAGE))
        assert "is the master of broker-a in epoch 2" in after and f"<code>{slave['to']}</code> is the master" in after
        await send(two, 1)


async def test_a_program_switches_over_to_what_it_looked_at(brokers: Group, log_in: Client) -> None:
    await log_in()
    api = await api_for(await User.objects.aget(role=Role.ADMIN), "config")
    place = "/brokers/broker-a/master"
    async with copied_pair(brokers, 3) as (one, two):
        _, plan = await api.call("get", place)
        assert plan["is_possible"] and plan["is_switch_over"] and plan["successor"] == f"127.0.0.1:{two.port}"
        assert plan["beware"] == [NO_REGISTER]
        status, told = await api.call("post", place, {"seen": "something else"})
        assert status == 409 and "changed since" in told["detail"] and is_master(one)
        status, told = await api.call("post", place, {"seen": plan["seen"], "successor": plan["successor"]})
        assert (status, told["address"]) == (200, plan["successor"])
        await until(lambda: is_master(two) and is_slave(one))
        changed = [item async for item in AuditEntry.objects.filter(action="master changed")]
        assert [(item.target, item.way) for item in changed] == [("broker-a", "rest")]
