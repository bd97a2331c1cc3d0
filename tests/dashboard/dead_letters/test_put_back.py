"""Dead letters at a real broker: read by cause, put back to the group or the topic, and none of them twice. Letters
by cause, and the condition that finds those of one.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dashboard.cluster.errors import BrokerUnreachable, GroupNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_query import understand
from dashboard.cluster.message_scan import TimeSpan
from dashboard.cluster.message_search import Search
from dashboard.dead_letters import letters, put_back
from dashboard.dead_letters.letters import grouped
from dashboard.dead_letters.put_back import TO_TOPIC, PutBacks, PutBackStep, TooManyPutBacks, Wish
from dashboard.models import PutBackRow
from gantrymq.client.admin.client import AdminClient
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import dlq_topic, retry_topic
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.dashboard.conftest import Topic, gateway_to
from tests.dashboard.dead_letters.dead import OUT_OF_STOCK, TIMED_OUT, give_up, stored
from tests.gantrymq.damaged_log import BODY_AT, Log
from tests.harness import serving

ALL = Search(understand(""), TimeSpan())
FAST = 200


def of_cause(cause: str) -> Search:
    return Search(understand(f'CONSUME_ERROR="{cause}"'), TimeSpan())


async def walk(gateway: Gateway, group: str, wish: Wish, older: str = "") -> list[PutBackStep]:
    """All steps to the end, as a page makes them."""
    detail = await letters.detail_of(gateway, group)
    steps = [await PutBacks().step(gateway, group, detail, wish, older=older, username="ada")]
    while steps[-1].older:
        steps.append(await PutBacks().step(gateway, group, detail, wish, older=steps[-1].older, username="ada"))
    return steps


def states(steps: list[PutBackStep]) -> list[str]:
    return [result.state for step in steps for result in step.results]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every letter is a step of its own."""
    monkeypatch.setattr(put_back, "STEP_S", -1.0)
    monkeypatch.setattr(put_back, "PAGE_LETTERS", 2)


async def test_letters_are_read_by_cause(gateway: Gateway, make_topic: Topic) -> None:
    topic = await make_topic("dead-causes")
    await give_up(gateway, topic, "causes", [OUT_OF_STOCK, "", OUT_OF_STOCK])
    names, _ = await letters.names(gateway)
    assert "causes" in names
    (row,) = await letters.summaries(gateway, ["causes"])
    assert (row.stored, row.looked_at, row.causes[0].error, row.causes[0].count) == (3, 3, OUT_OF_STOCK, 2)
    step = await letters.look(gateway, await letters.detail_of(gateway, "causes"), of_cause(OUT_OF_STOCK))
    assert (step.scanned, len(step.letters), step.older) == (3, 2, None)
    with pytest.raises(GroupNotFound):
        await letters.detail_of(gateway, "no-such-group")


async def test_what_was_counted_goes_back_to_its_group_alone(
    gateway: Gateway, make_topic: Topic, small_steps: None, transactional_db: None
) -> None:
    topic = await make_topic("dead-back")
    await give_up(gateway, topic, "backs", [OUT_OF_STOCK, TIMED_OUT, OUT_OF_STOCK])
    counted = await walk(gateway, "backs", Wish(of_cause(OUT_OF_STOCK), is_dry=True))
    assert (sum(step.matched for step in counted), sum(step.scanned for step in counted)) == (2, 3)
    assert not await PutBackRow.objects.aexists()
    await give_up(gateway, topic, "backs", [OUT_OF_STOCK])  # it comes behind the count: not of this run
    before = await stored(gateway, topic)
    done = await walk(gateway, "backs", Wish(of_cause(OUT_OF_STOCK), rate=FAST), counted[0].begin)
    assert states(done) == ["sent", "sent"]
    assert await stored(gateway, topic) == before, "the other groups of the topic get nothing"
    detail = await gateway.topics.get(retry_topic("backs"))
    sent = (await gateway.messages.newest(detail, limit=8)).messages
    ids = {result.message_id for step in done for result in step.results}
    assert {message.msg_id for message in sent} == ids, "its own ids"
    for message in sent:
        assert message.properties["RETRY_TOPIC"] == topic and message.reconsume_times == 0
        assert "CONSUME_ERROR" not in message.properties and message.keys
    rows = [row async for row in PutBackRow.objects.all()]
    assert {(row.state, row.username, row.cause, row.target) for row in rows} == {
        ("sent", "ada", OUT_OF_STOCK, "backs")
    }
    again = await walk(gateway, "backs", Wish(ALL, rate=FAST))
    assert sorted(states(again)) == ["before", "before", "sent", "sent"]
    assert states(await walk(gateway, "backs", Wish(ALL, rate=FAST, is_again=True))) == ["sent"] * 4


async def test_two_at_once_send_each_letter_once(gateway: Gateway, make_topic: Topic, transactional_db: None) -> None:
    topic = await make_topic("dead-two")
    await give_up(gateway, topic, "twos", [TIMED_OUT] * 4)
    wish = Wish(ALL, to=TO_TOPIC, rate=FAST)
    before = await stored(gateway, topic)
    both = await asyncio.gather(walk(gateway, "twos", wish), walk(gateway, "twos", wish))
    found = sorted(states(both[0]) + states(both[1]))
    assert found == ["before"] * 4 + ["sent"] * 4
    assert await stored(gateway, topic) == before + 4


async def test_a_lost_answer_ends_the_step_and_the_letter_is_not_sent_again(
    gateway: Gateway, make_topic: Topic, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await make_topic("dead-lost")
    await give_up(gateway, topic, "losts", [TIMED_OUT] * 2)

    async def lost(*_: object) -> None:
        raise BrokerUnreachable("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(gateway.fate, "put_back", lost)
        detail = await letters.detail_of(gateway, "losts")
        step = await PutBacks().step(gateway, "losts", detail, Wish(ALL, rate=FAST), older="", username="ada")
    assert (states([step]), step.troubles) == (["begun"], ["no answer"])
    assert step.older, "the others are still to come"
    assert sorted(states(await walk(gateway, "losts", Wish(ALL, rate=FAST)))) == ["before", "sent"]


async def test_few_put_back_at_once(gateway: Gateway, make_topic: Topic) -> None:
    await give_up(gateway, await make_topic("dead-many"), "manys", [""])
    busy, detail = PutBacks(), await letters.detail_of(gateway, "manys")
    busy.running = put_back.AT_ONCE_MAX
    with pytest.raises(TooManyPutBacks):
        await busy.step(gateway, "manys", detail, Wish(ALL, is_dry=True), older="", username="ada")


async def test_the_letters_own_topic_is_no_target(gateway: Gateway, make_topic: Topic, transactional_db: None) -> None:
    """A resend letter may fail again; that is a new letter, and the old ones stay where they are."""
    await give_up(gateway, await make_topic("dead-stay"), "stays", [""])
    await walk(gateway, "stays", Wish(ALL, rate=FAST))
    assert await stored(gateway, dlq_topic("stays")) == 1


async def test_a_damaged_letter_is_named_and_never_sent_and_the_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    async with serving(tmp_path) as cluster, gateway_to(cluster.namesrv_address, monkeypatch) as source:
        async with AdminClient(cluster.namesrv_address) as admin:
            await admin.topics.create_at(cluster.broker_address, TopicConfig("dead-damaged", 1, 1))
        await give_up(source, "dead-damaged", "damaged", [TIMED_OUT] * 3)
        (unit,) = cluster.broker.store.consume_queue_units(dlq_topic("damaged"), 0, 1, 1)
        Log(tmp_path / "store").flip(unit.physical_offset + BODY_AT)
        before = await stored(source, "dead-damaged")
        assert states(await walk(source, "damaged", Wish(ALL, to=TO_TOPIC, rate=FAST, is_dry=True))) == []
        steps = await walk(source, "damaged", Wish(ALL, to=TO_TOPIC, rate=FAST))
        assert await stored(source, "dead-damaged") == before + 2
    assert sorted(states(steps)) == ["failed", "sent", "sent"]
    (failed,) = [result for step in steps for result in step.results if result.state == "failed"]
    assert failed.place == f"{cluster.broker.config.broker_name}.0.1"
    assert failed.told.startswith(f"damaged: {dlq_topic('damaged')}, queue 0, offset 1")
    assert [step.troubles for step in steps] == [[]] * len(steps)


HOST = ("127.0.0.1", 1)


def letter(stored: int, **properties: str) -> MessageExt:
    return MessageExt("%DLQ%g", b"", 0, properties, 0, stored, 0, 0, 0, 0, HOST, stored, HOST, 0, 0, 0, "broker-a")


def test_letters_are_grouped_by_what_failed_the_most_frequent_first() -> None:
    told = {"CONSUME_ERROR": "shop.OutOfStock at orders.py:42"}
    letters = [
        letter(5, **told, CONSUME_ERROR_TEXT="OutOfStock: none of 17 left"),
        letter(9, **told, CONSUME_ERROR_TEXT="OutOfStock: none of 4 left"),
        letter(7),
    ]
    first, second = grouped(letters)
    assert (first.error, first.text, first.count) == (told["CONSUME_ERROR"], "OutOfStock: none of 4 left", 2)
    assert (first.first_ms, first.last_ms, first.place) == (5, 9, "broker-a.0.9")
    assert (second.error, second.count) == ("", 1)
    for cause, expected in ((first, [5, 9]), (second, [7])):
        found = [item.store_timestamp for item in letters if understand(cause.condition).matches(item)]
        assert found == expected, cause.condition
    assert grouped([]) == []
