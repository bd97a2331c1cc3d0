"""Runs that put dead letters back, at a real broker: they go on by themselves, are stopped, and are found again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.cluster.errors import BrokerUnreachable, GroupNotFound, NotAllowed
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_query import understand
from dashboard.cluster.message_scan import TimeSpan
from dashboard.cluster.message_search import Search
from dashboard.dead_letters import put_back, runs
from dashboard.dead_letters.discard import discard
from dashboard.dead_letters.put_back import TO_TOPIC, PutBackStep, Wish
from dashboard.dead_letters.runs import PutBackRuns
from dashboard.models import PutBackRow, PutBackRun, Role, User
from gantrymq.message.topics import dlq_topic, retry_topic
from tests.dashboard.conftest import Topic
from tests.dashboard.dead_letters.dead import OUT_OF_STOCK, TIMED_OUT, give_up, stored
from tests.waiting import until

ALL = Search(understand(""), TimeSpan())
FAST = 200


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[None]:
    """Every letter is a step of its own, and a failed step is tried again at once."""
    monkeypatch.setattr(put_back, "STEP_S", -1.0)
    monkeypatch.setattr(runs, "WAITS_S", (0.0, 0.0))
    yield


@pytest_asyncio.fixture(loop_scope="session")
async def service() -> AsyncIterator[None]:
    """What works on runs beside the pages."""
    task = asyncio.create_task(PutBackRuns().run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def begin(group: str, wish: Wish | None = None, **more: object) -> PutBackRun:
    chosen = {"older": "", "wanted": None, "username": "ada"} | more
    return await runs.start(group, wish or Wish(ALL, rate=FAST), **chosen)  # type: ignore[arg-type]


async def ended(row: PutBackRun) -> PutBackRun:
    async def is_over() -> bool:
        await row.arefresh_from_db()
        return not row.is_running

    await until(is_over)
    return row


async def test_a_run_goes_on_without_a_page_and_says_what_it_did(
    gateway: Gateway, make_topic: Topic, make_user: Callable[..., User], service: None
) -> None:
    await sync_to_async(make_user)(Role.OPERATOR, "ada")
    await give_up(gateway, await make_topic("run-whole"), "run-wholes", [OUT_OF_STOCK, TIMED_OUT, OUT_OF_STOCK])
    chosen = Wish(Search(understand(f'CONSUME_ERROR="{OUT_OF_STOCK}"'), TimeSpan()), rate=FAST)
    row = await ended(await begin("run-wholes", chosen, wanted=2))
    assert (row.state, row.sent, row.scanned, row.wanted, row.older) == ("done", 2, 3, 2, "")
    assert await stored(gateway, retry_topic("run-wholes")) == 2
    assert {letter.run_id async for letter in PutBackRow.objects.all()} == {row.pk}
    again = await ended(await begin("run-wholes"))
    assert (again.sent, again.before, again.username) == (1, 2, "ada")


async def test_a_run_may_what_its_account_may(
    gateway: Gateway, make_topic: Topic, make_user: Callable[..., User], service: None
) -> None:
    await give_up(gateway, await make_topic("run-rights"), "mine-rights", [TIMED_OUT])
    await sync_to_async(make_user)(Role.READER, "eve")
    reader = await ended(await begin("mine-rights", username="eve"))
    assert (reader.state, reader.sent) == ("failed", 0) and "eve can no longer" in reader.told
    await User.objects.filter(username="eve").aupdate(role=Role.OPERATOR, name_prefixes="mine-")
    to_topic = await ended(await begin("mine-rights", Wish(ALL, to=TO_TOPIC, rate=FAST), username="eve"))
    assert (to_topic.state, to_topic.sent, to_topic.failed) == ("done", 0, 1), "the topic is not among its names"
    own = await ended(await begin("mine-rights", username="eve"))
    assert (own.state, own.sent) == ("done", 1)


async def test_what_a_process_leaves_the_next_one_goes_on_with(gateway: Gateway, make_topic: Topic) -> None:
    await give_up(gateway, await make_topic("run-left"), "run-lefts", [TIMED_OUT] * 3)
    row = await begin("run-lefts")
    one_step = await put_back.put_backs.step(
        gateway, "run-lefts", await gateway.topics.get(dlq_topic("run-lefts")), runs.wish_of(row), older=row.older,
        username="ada",
    )  # fmt: skip
    assert one_step.count("sent") == 1, "it ended before it wrote down what it did"
    await runs.work(row)
    await row.arefresh_from_db()
    assert (row.state, row.sent, row.before) == ("done", 3, 0)
    assert await stored(gateway, retry_topic("run-lefts")) == 3, "none was sent twice"


async def test_another_person_stops_it_and_it_goes_on_where_it_was(
    gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give_up(gateway, await make_topic("run-stop"), "run-stops", [TIMED_OUT] * 3)
    row = await begin("run-stops")
    take_step = runs.put_backs.step

    async def stopped_meanwhile(*step: Any, **more: Any) -> PutBackStep:
        taken = await take_step(*step, **more)
        await runs.stop("run-stops", row.pk, "grace")
        return taken

    with monkeypatch.context() as patched:
        patched.setattr(runs.put_backs, "step", stopped_meanwhile)
        await runs.work(row)
    await row.arefresh_from_db()
    assert (row.state, row.stopped_by, row.sent, row.may_go_on) == ("stopped", "grace", 1, True)
    with pytest.raises(NotAllowed):
        await runs.stop("run-stops", row.pk, "ada")
    going = await runs.go_on("run-stops", row.pk, "grace")
    with pytest.raises(NotAllowed, match="are being resent already"):
        await runs.go_on("run-stops", row.pk, "ada")
    await runs.work(going)
    await row.arefresh_from_db()
    assert (row.state, row.stopped_by, row.sent, row.before) == ("done", "", 3, 0)
    with pytest.raises(NotAllowed, match="Nothing is left"):
        await runs.go_on("run-stops", row.pk, "grace")


async def test_one_run_of_a_group_at_a_time(gateway: Gateway, make_topic: Topic) -> None:
    await give_up(gateway, await make_topic("run-one"), "run-ones", [TIMED_OUT])
    await begin("run-ones")
    with pytest.raises(NotAllowed):
        await begin("run-ones")
    with pytest.raises(NotAllowed):
        await discard(gateway, "run-ones", 1)
    with pytest.raises(GroupNotFound):
        await begin("no-such-group")
    with pytest.raises(runs.RunNotFound):
        await runs.stop("another-group", 1, "ada")


async def test_a_silent_broker_is_tried_again_and_at_last_the_run_has_failed(
    gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give_up(gateway, await make_topic("run-fail"), "run-fails", [TIMED_OUT] * 2)
    row = await begin("run-fails")

    async def silent(*_: object, **__: object) -> None:
        raise BrokerUnreachable("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(gateway.messages, "newest", silent)
        await runs.work(row)
    await row.arefresh_from_db()
    assert (row.state, row.told, row.sent, row.may_go_on) == ("failed", "no answer", 0, True)
    await runs.work(await runs.go_on("run-fails", row.pk, "ada"))
    await row.arefresh_from_db()
    assert (row.state, row.sent) == ("done", 2)


async def test_discarded_letters_are_gone_and_the_next_one_is_kept(gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("run-gone")
    await give_up(gateway, topic, "run-gones", [TIMED_OUT] * 2)
    with pytest.raises(NotAllowed, match="2 dead letters now, not 5"):
        await discard(gateway, "run-gones", 5)
    row = await begin("run-gones")
    await runs.stop("run-gones", row.pk, "ada")
    assert await discard(gateway, "run-gones", 2) == 2
    with pytest.raises(GroupNotFound):
        await discard(gateway, "run-gones", 2)
    await runs.work(await runs.go_on("run-gones", row.pk, "ada"))
    await row.arefresh_from_db()
    assert (row.state, row.sent) == ("failed", 0) and "gone" in row.told
    await give_up(gateway, topic, "run-gones", [OUT_OF_STOCK])
    detail = await gateway.topics.get(dlq_topic("run-gones"))
    (letter,) = (await gateway.messages.newest(detail, limit=8)).messages
    assert letter.properties["CONSUME_ERROR"] == OUT_OF_STOCK


async def test_what_is_old_or_too_much_is_forgotten(
    gateway: Gateway, make_topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give_up(gateway, await make_topic("run-old"), "run-olds", [TIMED_OUT] * 3)
    row = await begin("run-olds")
    await runs.work(row)
    (first, *_) = [letter async for letter in PutBackRow.objects.order_by("pk")]
    await PutBackRow.objects.filter(pk=first.pk).aupdate(at=timezone.now() - runs.KEPT - timedelta(days=1))
    await runs.forget_old()
    assert await PutBackRow.objects.acount() == 2
    monkeypatch.setattr(runs, "ROWS_MAX", 1)
    monkeypatch.setattr(runs, "RUNS_MAX", 0)
    await runs.forget_old()
    (newest,) = [letter async for letter in PutBackRow.objects.all()]
    assert newest.run_id is None and not await PutBackRun.objects.aexists()
