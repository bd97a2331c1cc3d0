"""Two masters of one epoch: the page and REST show both logs, and a person chooses which one counts."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from tests.appliance.broker.replication.brokers import Group, is_master, is_slave, same_logs, send
from tests.appliance.broker.replication.rivals.parted import has_rival, part, refuses_sends
from tests.dashboard.conftest import Client, api_for
from tests.waiting import until

PAGE, CHOICE = "/broker/broker-a/master", "/broker/broker-a/settlement"
SEEN = re.compile(r'action="/broker/broker-a/settlement".*?name="seen" value="([^"]*)"', re.DOTALL)


@pytest.mark.parametrize("way", ["page", "rest"])
async def test_an_administrator_chooses_the_one_log(tmp_path: Path, brokers: Group, log_in: Client, way: str) -> None:
    client = await log_in()
    api = await api_for(await User.objects.aget(role=Role.ADMIN), "config")
    await part(brokers, tmp_path)
    async with brokers.broker("two", broker_id=1) as two, brokers.broker("three", broker_id=2) as three:
        await until(lambda: has_rival(two) and has_rival(three))
        kept = three.controller.address
        page = unescape((await client.get(PAGE)).content.decode())
        assert "Which log counts?" in page and "settle broker-a --keep 127.0.0.1:" in page
        assert kept in page and "does not answer and may have more" not in page
        seen = SEEN.findall(page)[0]
        order = {"keep": kept, "seen": seen, "typed_name": "broker-a"}
        for wrong in ({"typed_name": "broker-b"}, {"seen": "other"}, {"keep": "10.0.0.1:1"}):
            assert (await client.post(CHOICE, order | wrong)).status_code == 302
            assert await refuses_sends(two) and await refuses_sends(three)
        _, found = await api.call("get", "/brokers/broker-a/settlement")
        assert (
            found["is_needed"]
            and found["seen"] == seen
            and sorted(found["masters"]) == sorted([two.controller.address, kept])
        )
        status, told = await api.call("post", "/brokers/broker-a/settlement", {"keep": "10.0.0.1:1", "seen": seen})
        assert status == 409 and "not a master that answers" in told["detail"]
        if way == "page":
            await client.post(CHOICE, order)
        else:
            status, told = await api.call("post", "/brokers/broker-a/settlement", {"keep": kept, "seen": seen})
            assert (status, told["address"]) == (200, kept), told
        await until(lambda: is_master(three) and is_slave(two))
        await same_logs(two, three)
        await send(three, 1)
        assert "Which log counts?" not in (await client.get(PAGE)).content.decode()
    entry = await AuditEntry.objects.aget(action="log chosen")
    assert entry.target == "broker-a" and entry.way == {"page": "page", "rest": "rest"}[way]
