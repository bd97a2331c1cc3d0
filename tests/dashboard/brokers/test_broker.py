"""A broker's page: its figures, charts of its own, and one that is gone."""

from __future__ import annotations

import dataclasses
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dashboard.audit.chain import Change, append
from dashboard.brokers.changes import entries_of
from dashboard.cluster import units
from dashboard.cluster.gateway import Gateway
from dashboard.history.keeper import HistoryKeeper
from dashboard.live.sampler import Sampler
from dashboard.models.audit import Way
from dashboard.models.management import Role
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot, board
from dashboard.status.cluster_metrics import OWN_PARTS
from tests.dashboard.conftest import Client
from tests.dashboard.status.masters import master, seen, slave


async def test_a_broker_has_a_page_with_its_own_history(gateway: Gateway, log_in: Client) -> None:
    now = time.time()
    keeper = HistoryKeeper()
    for ago in range(180, 0, -1):
        facts = BrokerFacts("broker-a", "a", now - ago, in_now=321.0, out_now=654.0, disk_ratio=0.47, boot_ms=1)
        keeper.note(Snapshot(now - ago, "n", None, (BrokerState("broker-a", "a", facts),), (), None))
    await keeper.write()
    await Sampler(gateway).sample()
    client = await log_in(Role.READER)
    page = (await client.get("/broker/broker-a?range=15m")).content.decode()
    assert "Messages per second" in page and "321" in page and "654" in page
    assert "Disk" in page and "[47.0]" in page and "Recent changes" not in page
    assert 'href="/broker/broker-a"' in (await client.get("/")).content.decode()


async def test_a_broker_that_is_gone_keeps_its_last_figures_and_says_why(gateway: Gateway, log_in: Client) -> None:
    facts = BrokerFacts("broker-z", "10.0.0.9:10911", time.time() - 60, in_rate=5.0, version="V4_9_4")
    state = BrokerState("broker-z", "10.0.0.9:10911", facts, "not reachable (refused)", time.time() - 50)
    board.put(Snapshot(time.time(), "n", None, (state,), (), None))
    page = (await (await log_in(Role.OPERATOR)).get("/broker/broker-z")).content.decode()
    assert "It does not answer: not reachable (refused)" in page and "from its last answer" in page


@pytest.mark.parametrize(("copies", "dot"), [("copying", "good"), ("connecting", "attention")])
async def test_a_slave_that_does_not_copy_is_not_marked_as_good(
    gateway: Gateway, log_in: Client, copies: str, dot: str
) -> None:
    board.put(seen(master(), slave(changes={"slaveState": copies})))
    page = (await (await log_in(Role.READER)).get("/brokers")).content.decode()
    row = page.partition('<tr class="is-slave">')[2].partition("</tr>")[0]
    assert f'class="dot dot-{dot}"' in row


async def test_what_was_asked_of_a_slaves_process_is_on_its_brokers_page(transactional_db: None, settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(settings.APPLIANCE, brokers=2, slaves=1)
    at = datetime.now(UTC)
    made = [
        Change(who="", way=Way.REMOTING, address="127.0.0.1", action="slave promoted", target=target, at=at)
        for target in ("broker-a-2", "broker-b-2")
    ]
    await sync_to_async(append)(made)
    for name in ("broker-a", "broker-b"):
        assert [entry.target for entry in await entries_of(name, 10)] == [f"{name}-2"]


@pytest.mark.parametrize("name", ["no-such", "%3Cscript%3E"])
async def test_a_broker_that_is_not_there_is_not_found(name: str, gateway: Gateway, log_in: Client) -> None:
    assert (await (await log_in(Role.READER)).get(f"/broker/{name}")).status_code == 404


@pytest.mark.parametrize("span", ["1h", "24h", "30d"])
async def test_a_page_with_all_its_charts_full_stays_small(
    log_in: Client, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, span: str
) -> None:
    async def full(series: str, stored: int, step: int, begin: int, until: int) -> dict[int, float]:
        return {at: at % 4999 + 0.123 for at in range(begin, until, step)}

    async def slaves(*given: object) -> list[str]:
        return ["broker-a:1", "broker-a:2", "broker-a:3"]

    monkeypatch.setattr("dashboard.history.charts.values_of", full)
    monkeypatch.setattr("dashboard.history.slave_charts._slaves_of", slaves)
    await Sampler(gateway).sample()
    page = (await (await log_in("admin")).get(f"/broker/broker-a?range={span}")).content
    assert page.count(b"data-history-points") >= 7 and len(page) < 100_000
    assert page.count(b'class="ranges"') == 1


async def test_a_brokers_memory_is_shown_by_what_it_is_for(gateway: Gateway, log_in: Client) -> None:
    await Sampler(gateway).sample()
    client = await log_in(Role.READER)
    page = (await client.get("/broker/broker-a")).content.decode()
    found = dict(re.findall(r'data-live="broker\.broker-a\.memory\.?(\w*)"[^>]*>([^<]+)<', page))
    assert found.keys() == {"", "own", "mapped", "swapped", *OWN_PARTS}
    assert all(text[0].isdigit() for text in found.values()), found


async def test_memory_that_the_brokers_system_does_not_tell_is_unknown(gateway: Gateway, log_in: Client) -> None:
    facts = BrokerFacts("broker-z", "10.0.0.9:10911", time.time(), version="V4_9_4")
    board.put(Snapshot(time.time(), "n", None, (BrokerState("broker-z", "10.0.0.9:10911", facts),), (), None))
    page = (await (await log_in(Role.READER)).get("/broker/broker-z")).content.decode()
    found = re.findall(r'data-live="broker\.broker-z\.memory\.?(\w*)"[^>]*>([^<]+)<', page)
    assert found == [("", units.UNKNOWN)]
