"""Each slave over time: bytes, messages, seconds behind, in sync, transfer rate, on the broker's page and by REST."""

from __future__ import annotations

import time

from dashboard.cluster.gateway import Gateway
from dashboard.history.block_builder import HOUR, MINUTE, SECOND
from dashboard.history.charts import RANGES, Line, chart_of
from dashboard.history.keeper import HistoryKeeper
from dashboard.history.series import EACH_SECOND, OF_SLAVES, SLAVE_IN_SYNC, each_second
from dashboard.history.slave_charts import slave_charts
from dashboard.models.history import HistoryBlock
from dashboard.models.management import Role, User
from dashboard.status.board import Snapshot, board
from gantrymq.remoting.admin_bodies import SlaveDifference
from tests.dashboard.conftest import Client, api_for
from tests.dashboard.status.masters import CONNECTION, STRANGER, telling

FIVE = ("slave-behind-s", "slave-behind-bytes", "slave-behind-messages", "slave-in-sync", "slave-bytes-rate")
SLAVE = "broker-a:1"


def seconds(begin: float) -> list[Snapshot]:
    """Three minutes: in the middle one the slave is not in sync for half of the time."""
    return [
        telling(begin + at, SlaveDifference(CONNECTION, at * 1000, at / 10, not 60 <= at < 90, 512, at))
        for at in range(180)
    ]


async def keep(begin: int, *snapshots: Snapshot) -> None:
    keeper = HistoryKeeper(lambda: float(begin))
    for snapshot in snapshots:
        keeper.note(snapshot)
    keeper.note(Snapshot(begin + 181.0, "n", None, (), (), None))
    await keeper.write()


def test_all_five_figures_of_a_slave_are_kept_by_the_second() -> None:
    assert OF_SLAVES == FIVE and set(FIVE) <= EACH_SECOND
    found = each_second(telling(0.0, SlaveDifference(CONNECTION, 2048, 1.5, True, 512, 7)))
    assert {kind: found[f"{kind}:{SLAVE}"] for kind in FIVE} == dict(zip(FIVE, (1.5, 2048, 7, 1.0, 512), strict=True))


def test_what_the_master_does_not_know_is_a_gap_and_slaves_of_one_host_are_one_with_the_worst_of_each() -> None:
    far, near = SlaveDifference(STRANGER, 900, 3.0, False, 10, -1), SlaveDifference("10.0.0.7:5", 1, 0.0, True, 20, -1)
    found = each_second(telling(0.0, far, near))
    assert [found.get(f"{kind}:10.0.0.7") for kind in FIVE] == [3.0, 900, None, 0.0, 20]
    assert not any(STRANGER in name for name in found)
    silent = each_second(telling(0.0, far, why="no answer"))
    assert not any(name.startswith("slave-") for name in silent)


async def test_minutes_keep_the_worst_and_the_share_in_sync(transactional_db: None) -> None:
    begin = int(time.time()) // HOUR * HOUR - 12 * HOUR
    await keep(begin, *seconds(begin))
    for kind, minutes in (
        ("slave-behind-bytes", [59_000.0, 119_000.0, 179_000.0]),
        ("slave-behind-messages", [59.0, 119.0, 179.0]),
        (SLAVE_IN_SYNC, [1.0, 0.5, 1.0]),
        ("slave-bytes-rate", [512.0, 512.0, 512.0]),
    ):
        line = Line(SLAVE, f"{kind}:{SLAVE}", "")
        chart = await chart_of("", "", [line], RANGES["6h"], None, begin + 6 * HOUR)
        assert [value for _, value in chart.points if value is not None] == minutes
    steps = {row.step_s async for row in HistoryBlock.objects.filter(series=f"slave-behind-bytes:{SLAVE}")}
    assert {SECOND, MINUTE} <= steps


async def test_a_slave_that_is_gone_stays_in_its_masters_charts(transactional_db: None) -> None:
    now = int(time.time())
    await keep(now, *seconds(now - 300))
    alone = telling(now)
    charts = await slave_charts(alone.masters[0], alone, RANGES["1h"], None)
    assert [chart.title for chart in charts] == [
        "Bytes behind", "Messages behind", "Seconds behind", "In sync, % of the time", "Transfer rate",
    ]  # fmt: skip
    assert {line.label for chart in charts for line in chart.lines} == {SLAVE}
    of_slave = await slave_charts(alone.slaves_of("broker-a")[0], alone, RANGES["1h"], None)
    assert [chart.points for chart in of_slave] == [chart.points for chart in charts]


async def test_the_pages_of_master_and_slave_show_it(gateway: Gateway, log_in: Client) -> None:
    now = int(time.time())
    await keep(now, *seconds(now - 300))
    board.put(telling(now, SlaveDifference(CONNECTION, 5, 0.5, True, 512, 7)))
    client = await log_in(Role.READER)
    master_page = (await client.get("/broker/broker-a?range=1h")).content.decode()
    slave_page = (await client.get(f"/broker/{SLAVE}?range=1h")).content.decode()
    assert "Slaves" in master_page and "Replication" in slave_page
    for page in (master_page, slave_page):
        assert page.count("Bytes behind") >= 1 and "Transfer rate" in page and SLAVE in page


async def test_rest_has_each_of_them(users: dict[str, User], gateway: Gateway) -> None:
    now = int(time.time())
    await keep(now, *seconds(now - 300))
    api = await api_for(users["reader"], "read")
    for kind in FIVE:
        status, answer = await api.call("get", f"/history?kind={kind}&subject={SLAVE}&span=1h")
        assert status == 200 and any(value is not None for value in answer["values"])
