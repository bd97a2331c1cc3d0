"""Charts of the history: what is kept is shown, gaps stay gaps, marks say what happened, on pages and by REST."""

from __future__ import annotations

import time
from array import array
from datetime import UTC, datetime, timedelta

from asgiref.sync import sync_to_async

from dashboard.access.permissions import ROLE_PERMISSIONS, Principal
from dashboard.audit.chain import Change, append
from dashboard.cluster.gateway import Gateway
from dashboard.history.block_builder import HOUR, MINUTE, SECOND
from dashboard.history.charts import RANGES, Chart, Line, chart_of
from dashboard.history.keeper import HistoryKeeper
from dashboard.models.audit import Way
from dashboard.models.history import HistoryBlock, HistoryMark
from dashboard.models.management import Role, User
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot, WatchedGroup, board
from tests.dashboard.conftest import Client, Topic, api_for

NOON = 1_700_000_000 // 86_400 * 86_400 + 12 * HOUR
NAN = float("nan")
IN = (Line("in", "in", "in"),)


def snapshot(at: float, rate: float | None, *, boot_ms: int = 1, groups: tuple[WatchedGroup, ...] = ()) -> Snapshot:
    facts = BrokerFacts("broker-a", "a", at, in_now=rate, out_now=rate, disk_ratio=0.5, boot_ms=boot_ms)
    return Snapshot(at, "n", None, (BrokerState("broker-a", "a", facts),), (), None, groups=groups)


async def block(series: str, step: int, start: int, *values: float) -> None:
    room = {SECOND: 60, MINUTE: 60, HOUR: 24}[step]
    kept = array("f", [*values, *[NAN] * (room - len(values))])
    await HistoryBlock.objects.acreate(series=series, step_s=step, start=start, values=kept.tobytes())


def known(chart: Chart) -> dict[float, float]:
    return {point[0] or 0.0: point[1] for point in chart.points if point[1] is not None}


async def test_what_the_sampler_saw_is_what_the_chart_shows_over_a_restart(transactional_db: None) -> None:
    group = WatchedGroup("g", 70, 5000, 1, NOON)
    for begin, rate in ((NOON, 10.0), (NOON + 600, 30.0)):
        keeper = HistoryKeeper(lambda: NOON + 700.0)
        for second in range(0, 180, 10):
            keeper.note(snapshot(begin + second, rate, groups=(WatchedGroup("g", 70, 5000, 1, begin + second),)))
        await keeper.write()
    lag = await chart_of("", "", [Line("lag", f"group-lag:{group.name}", "lag")], RANGES["6h"], None, NOON + HOUR)
    assert known(lag) == {NOON + minute * 60: 70.0 for minute in (0, 1, 10, 11)}
    chart = await chart_of("", "", IN, RANGES["6h"], None, NOON + HOUR)
    assert known(chart)[NOON] == 10.0 and known(chart)[NOON + 600] == 30.0
    assert chart.points[-1][0] == NOON + HOUR - 60 and len(chart.points) == 360
    seconds = await chart_of("", "", IN, RANGES["15m"], None, NOON + 300)
    assert seconds.step_s == 5 and known(seconds)[NOON + 10] == 10.0 and NOON + 15 not in known(seconds)


async def test_a_longer_step_keeps_the_mean_of_a_rate_and_the_most_of_a_lag(transactional_db: None) -> None:
    for series in ("in", "group-lag:g"):
        await block(series, MINUTE, NOON, 10.0, NAN, 30.0)
    span = RANGES["24h"]
    rate = await chart_of("", "", IN, span, None, NOON + HOUR)
    lag = await chart_of("", "", [Line("", "group-lag:g", "")], span, None, NOON + HOUR)
    assert (known(rate), known(lag)) == ({NOON: 20.0}, {NOON: 30.0})


async def test_weeks_are_made_of_hours(transactional_db: None) -> None:
    day = NOON - 12 * HOUR
    await block("in", HOUR, day, 1.0, NAN, 3.0)
    chart = await chart_of("", "", IN, RANGES["7d"], None, NOON)
    assert known(chart) == {day: 1.0, day + 2 * HOUR: 3.0}


async def test_restarts_and_changes_are_marked_for_who_may_see_them(transactional_db: None) -> None:
    at = datetime.fromtimestamp(NOON, UTC)
    keeper = HistoryKeeper(lambda: NOON - 7200.0)
    keeper.note(snapshot(NOON, 1.0, boot_ms=1))
    keeper.note(snapshot(NOON + 1, 1.0, boot_ms=NOON * 1000))
    await keeper.write()
    made = Change(who="ada", way=Way.PAGE, address="", action="topic created", target="orders", at=at)
    await sync_to_async(append)([made])
    seen = {Role.READER: ["broker-a started"], Role.ADMIN: ["broker-a started", "topic created orders (ada)"]}
    for role, texts in seen.items():
        principal = Principal(User(role=role), ROLE_PERMISSIONS[role])
        chart = await chart_of("", "", IN, RANGES["1h"], principal, NOON + 60)
        assert sorted(mark.text for mark in chart.marks) == texts


async def test_another_master_is_one_mark_and_no_restarts_of_brokers_that_changed_names(transactional_db: None) -> None:
    def at(seconds: int, *brokers: tuple[str, int, int]) -> Snapshot:
        """Of each broker its address, its number, and when it began."""
        states = [
            BrokerState(name := f"b:{number}" if number else "b", address,
                        BrokerFacts(name, address, NOON + seconds, boot_ms=boot_ms), broker_id=number)
            for address, number, boot_ms in brokers
        ]  # fmt: skip
        return Snapshot(NOON + seconds, "n", None, tuple(states), (), None)

    keeper = HistoryKeeper(lambda: NOON - 7200.0)
    keeper.note(at(0, ("h:1", 0, 1), ("h:2", 1, 2), ("h:3", 2, 3)))
    keeper.note(at(4, ("h:2", 1, 2), ("h:3", 2, (NOON + 4) * 1000)))  # it begins anew before its name is known
    await keeper.write()
    keeper.note(at(5, ("h:3", 0, (NOON + 4) * 1000), ("h:2", 1, 2), ("h:1", 2, (NOON + 5) * 1000)))
    await keeper.write()
    notified = Change(who="", way=Way.REMOTING, address="", action="broker notified of a new master", target="b",
                      at=datetime.fromtimestamp(NOON + 5, UTC))  # fmt: skip
    await sync_to_async(append)([notified])
    principal = Principal(User(role=Role.ADMIN), ROLE_PERMISSIONS[Role.ADMIN])
    chart = await chart_of("", "", IN, RANGES["1h"], principal, NOON + 60)
    assert sorted(mark.text for mark in chart.marks) == ["b:2 started", "h:3 became the master of b"]


async def test_what_was_done_again_and_again_is_one_mark(transactional_db: None) -> None:
    at = datetime.fromtimestamp(NOON, UTC)
    made = [
        Change(who="ada", way=Way.REMOTING, address="", action="topic created", target=f"t-{number}", at=at)
        for number in range(300)
    ]
    before = Change(
        who="ada", way=Way.PAGE, address="", action="group's offsets reset", target="orders",
        at=at - timedelta(minutes=9),
    )  # fmt: skip
    await sync_to_async(append)([before, *made])
    chart = await chart_of(
        "", "", IN, RANGES["1h"], Principal(User(role=Role.ADMIN), ROLE_PERMISSIONS[Role.ADMIN]), NOON + 60
    )
    assert [mark.text for mark in chart.marks] == [
        "group's offsets reset orders (ada)",
        "topic created t-0 … t-299 × 300 (ada)",
    ]


async def test_old_blocks_go(transactional_db: None) -> None:
    now = int(time.time())
    for step, age in ((SECOND, 2 * 86_400), (MINUTE, 40 * 86_400), (HOUR, 40 * 86_400), (MINUTE, 86_400)):
        await block(f"s{step}-{age}", step, (now - age) // 86_400 * 86_400, 1.0)
    await HistoryMark.objects.acreate(at=datetime.fromtimestamp(now - 40 * 86_400, UTC), text="old")
    await HistoryKeeper().write()
    assert [one.series async for one in HistoryBlock.objects.all()] == ["s60-86400"]
    assert "old" not in [one.text async for one in HistoryMark.objects.all()]


async def test_pages_and_rest_show_the_range_that_the_address_says(log_in: Client, gateway: Gateway) -> None:
    now = int(time.time())
    await block("in", MINUTE, now // HOUR * HOUR - 2 * HOUR, *[42.5] * 60)
    board.put(snapshot(time.time(), 1.0))  # a page without one waits for it
    client = await log_in("admin")
    page = (await client.get("/?range=6h")).content.decode()
    assert "data-history-points" in page and "42.5" in page and 'href="?range=7d#ranges"' in page
    assert "data-history-points" not in (await client.get("/")).content.decode()
    assert "data-chart-points" in (await client.get("/?range=nonsense")).content.decode()
    api = await api_for(await User.objects.aget(username="reader"), "read")
    status, found = await api.call("get", "/history?kind=in&span=6h")
    assert (status, found["step_s"], len(found["values"])) == (200, 60, 360)
    assert found["values"].count(42.5) == 60 and None in found["values"]
    assert (await api.call("get", "/history?kind=weather"))[0] == 422


async def test_topics_and_groups_have_charts(log_in: Client, make_topic: Topic) -> None:
    topic = await make_topic("charted")
    client = await log_in("reader")
    for address in (f"/topic/{topic}/charts", "/group/TOOLS_CONSUMER?range=24h"):
        page = (await client.get(address)).content.decode()
        assert "data-history-points" in page and "No values for this time." in page
