"""The Overview of ten brokers in a real browser: one screen at a desk, two and a half on a telephone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.audit.chain import Change, append
from dashboard.cluster.values import BrokerRef
from dashboard.models.alerts import AlertRow
from dashboard.models.audit import Way
from dashboard.models.management import Role
from dashboard.status.board import BrokerState, board
from dashboard.status.check import Check, Level
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences
from tests.dashboard.conftest import Client
from tests.dashboard.status.masters import COPYING, seen, state
from tests.e2e.conftest import browser  # noqa: F401

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROKERS, PROBLEMS = 10, 2
SCREENS = ((1280, 900, 1000), (1920, 1080, 1080), (390, 844, 2000))  # width, height, the page's height at most
LOOK = """
const rows = [...document.querySelectorAll('.cluster tbody tr')].map((row) => row.getBoundingClientRect().height);
const cells = [...document.querySelectorAll('.cluster th, .cluster td')];
const cut = cells.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML);
return [document.documentElement.scrollHeight, document.documentElement.scrollWidth, rows, cut];
"""


def brokers(*, slaves: bool) -> list[BrokerState]:
    """Ten masters, each with a slave if wanted."""
    found = []
    for number in range(BROKERS):
        name, host = f"broker-{chr(97 + number)}", f"10.20.30.{number + 1}"
        slave = SlaveDifference(f"{host}:40001", 2048, 1.0, True, 512, 0)
        told = {"slaveDifferences": SlaveDifferences([slave] if slaves else []).to_json().decode()}
        figures = {"commitLogDirCapacity": "Total : 252.0 GiB, Free : 60.6 GiB.", "commitLogDiskRatio": "0.61"}
        found.append(state(BrokerRef(name, f"{host}:10911", "C"), **told, **figures))
        if slaves:
            copying = COPYING | {"slaveConnection": f"{host}:40001"}
            found.append(state(BrokerRef(name, f"{host}:10921", "C", 1), **copying, **figures))
    return found


@pytest.mark.parametrize("slaves", [False, True])
async def test_ten_brokers_are_one_screen(
    log_in: Client,
    browser: Chrome,  # noqa: F811
    tmp_path: Path,
    slaves: bool,
) -> None:
    client = await log_in(Role.ADMIN)
    now = timezone.now()
    for number in range(5):
        title = f"Messages are waiting and the group has no members: orders-application-{number}"
        await AlertRow.objects.acreate(subject=str(number), level=2, title=title, text="", begun_at=now)
    await sync_to_async(append)([Change(who="anna", way=Way.PAGE, address="", action="topic created", target="orders")])
    problems = [
        Check(Level.BAD, f"orders-application-{number} has no members", "24 min behind, 17 105 messages wait",
              "No consumer reads its messages. Start its consumers; if the group is no longer needed, delete it.")
        for number in range(PROBLEMS)
    ]  # fmt: skip
    board.snapshot = replace(seen(*brokers(slaves=slaves)), problems=tuple(problems))
    page = tmp_path / "overview.html"
    page.write_text(await _alone(client), encoding="utf-8")
    for width, height, height_max in SCREENS:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(page.as_uri())
        found_height, found_width, rows, cut = browser.execute_script(LOOK)
        assert len(rows) == BROKERS and cut == [] and min(rows) >= 20, (width, rows, cut)
        assert found_width <= width
        assert found_height <= height_max, f"{width} px wide: {found_height} px high"


async def _alone(client) -> str:  # type: ignore[no-untyped-def]
    """The page as a file that needs nothing else: its styles in it, and no scripts."""
    shown = (await client.get("/")).content.decode()
    link = re.search(r'<link rel="stylesheet" href="([^"]+)">', shown)
    assert link
    style = (await client.get(link[1])).content.decode()
    return re.sub(r"<script[^>]*src=.*?</script>", "", shown.replace(link[0], f"<style>{style}</style>"))
