"""Automatic failover on a broker's “Master” page, and for programs: who takes over, paused and resumed by whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio
from django.template.loader import render_to_string

from dashboard.brokers.failover_schemas import FailoverOut
from dashboard.live.failover_watch import FailoverWatch
from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from dashboard.status.board import BrokerFacts, BrokerState
from gantrymq.client.admin.failover import FailoverChange, FailoverMember, FailoverStatus
from tests.appliance.broker.failover.automatic import member
from tests.appliance.broker.replication.brokers import group
from tests.appliance.broker.replication.recorded import OnRecord
from tests.dashboard.conftest import Client, api_for, gateway_to
from tests.servers.etcd import etcd
from tests.waiting import until

PAGE = "/broker/broker-a/master"


@pytest_asyncio.fixture(loop_scope="session")
async def on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OnRecord]:
    with etcd(tmp_path / "etcd") as (node,):
        async with group(tmp_path) as brokers, gateway_to(brokers.namesrv_address, monkeypatch):
            yield OnRecord(brokers, node)


@pytest.mark.slow
async def test_an_administrator_pauses_and_resumes_what_the_page_shows(
    on_record: OnRecord, log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, operator = await log_in(), await log_in(Role.OPERATOR)
    api = await api_for(await User.objects.aget(role=Role.ADMIN), "config")
    place = "/brokers/broker-a/failover"

    async def shown() -> str:
        return unescape((await client.get(PAGE)).content.decode())

    async with member(on_record, "two", 1) as two, member(on_record, "one", 0) as one:
        await on_record.begin(one)
        await on_record.join(one, two)
        await on_record.until_in_sync(one, two)
        takes_over = f"<code>{two.controller.address}</code> takes over in about"

        async def is_ready() -> bool:
            return takes_over in await shown()

        await until(is_ready)
        assert f"<code>{one.controller.address}</code>" in await shown()
        assert (await operator.post(f"{PAGE[:-11]}/failover/pause", {"why": "disks"})).status_code == 403
        done = await client.post("/broker/broker-a/failover/pause", {"why": "disks are replaced", "minutes": "30"})
        assert done.status_code == 302
        page = await shown()
        assert "admin paused failover" in page and "disks are replaced" in page and takes_over not in page
        _, told = await api.call("get", place)
        assert told["pause"]["created_by"] == "admin" and told["next_master"] is None and told["epoch"] == 1
        assert [change["reason"] for change in told["changes"]] == ["init"]
        for fields, said in (({"why": ""}, "required"), ({"why": "again"}, "paused already")):
            await client.post("/broker/broker-a/failover/pause", fields)
            assert said in await shown(), "what speaks against it"
        status, refused = await api.call("post", f"{place}/pause", {"reason": "again"})
        assert status == 409 and "paused already" in refused["detail"]
        status, told = await api.call("post", f"{place}/resume", {})
        assert (status, told["pause"]) == (200, None)
        await until(is_ready)  # the slave says so of itself each two seconds
        noted = [(item.action, item.way) async for item in AuditEntry.objects.filter(target="broker-a")]
        assert ("failover paused", "page") in noted and ("failover resumed", "rest") in noted
        told = [(item.result, item.told) async for item in AuditEntry.objects.filter(action__startswith="POST")]
        assert [result for result, text in told if "paused already" in text] == ["failed"], "no mistake in a form"
        await _is_watched(on_record, [one.controller.address, two.controller.address])


async def _is_watched(on_record: OnRecord, addresses: list[str]) -> None:
    from dashboard.cluster.gateway import gateway

    states = [
        BrokerState("broker-a", at, BrokerFacts("broker-a", at, 0.0, told={"epochRegister": "etcd"}))
        for at in addresses
    ]
    watch = FailoverWatch(gateway(), lambda: states)
    await watch.look()
    assert watch.seen["broker-a"].watched is not None and watch.seen["broker-a"].status is not None
    assert watch.seen["broker-a"].status.next_master == addresses[1]
    states.clear()
    await watch.look()
    assert watch.seen == {}


def test_how_long_a_takeover_took_counts_from_what_etcd_knows() -> None:
    """A master that was killed is released by who finds it dead, so none can say how long there was no master."""
    change = FailoverChange(2, "10.0.0.2:10911", "the master before has released the term", 1000, out_ms=1)
    told = FailoverStatus("broker-a", master="10.0.0.2:10911", changes=(change,))
    page = render_to_string("brokers/_failover.html", {"failover": told, "name": "broker-a", "now": 2.0})
    assert "Taken over after" in page and "or the release, of the master before" in page
    assert "Without a master" not in page and "1\u202fms" in page
    [row] = FailoverOut.of_status(told).changes
    assert row.taken_over_after_s == 0.001


def test_a_master_that_says_why_it_does_not_serve_is_shown_with_that() -> None:
    older = "the store of member 1 is an older copy: a part of its log is lost, and it has to follow first"
    for refusal, shown in ((older, older), ("", "is the master")):
        master = FailoverMember(1, "10.0.0.1:10911", in_sync=True, is_master=True, refusal=refusal)
        told = FailoverStatus("broker-a", master=master.address, members=(master,))
        page = render_to_string("brokers/_failover.html", {"failover": told, "name": "broker-a", "now": 2.0})
        assert f'<td class="muted">{shown}</td>' in page
