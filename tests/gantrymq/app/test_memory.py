"""An application without a broker: handlers, publishers, tries, dead letters."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from gantrymq import App, ConsumeResult, DeadLetter, Interceptor, Message, MessageExt, RetryLater
from gantrymq.errors import ClientClosed, ConfigError, WrongType
from gantrymq.testing import in_memory

NOWHERE = "127.0.0.1:1"  # no connection is made


@dataclass
class Order:
    id: str
    count: int


@pytest.fixture
def app() -> App:
    return App(NOWHERE)


async def test_what_is_published_reaches_the_handlers_with_its_type(app: App) -> None:
    billed: list[Order] = []
    audited: list[tuple[str, dict[str, Any]]] = []
    orders = app.publisher("orders", Order)
    bills = app.publisher("bills", dict)

    @app.consumer("orders", group="billing")
    async def bill(order: Order) -> None:
        billed.append(order)
        await bills.send({"order": order.id})

    @app.consumer("bills", group="audit")
    @app.consumer("orders", "big", group="audit")
    def audit(message: MessageExt, payload: dict[str, Any]) -> ConsumeResult:
        audited.append((message.topic, payload))
        return ConsumeResult.SUCCESS

    async with in_memory(app) as memory:
        result = await orders.send(Order("o-1", 2), tags="big", keys="k", headers={"n": 1})
        await orders.send(Order("o-2", 1), tags="small")
        await memory.settled()
        assert memory.bodies("bills") == [b'{"order":"o-1"}', b'{"order":"o-2"}']
        assert (memory.published[0].msg_id, memory.published[0].keys) == (result.msg_id, ["k"])
        assert memory.published[0].header("n", int) == 1
    assert billed == [Order("o-1", 2), Order("o-2", 1)]
    assert [topic for topic, _ in audited] == ["orders", "bills", "bills"]
    assert audited[0][1] == {"id": "o-1", "count": 2}
    with pytest.raises(ClientClosed):
        await orders.send(Order("late", 1))


async def test_a_handler_may_be_called_like_the_function_it_is(app: App) -> None:
    @app.consumer("orders", group="g")
    def double(order: Order) -> None:
        order.count *= 2

    order = Order("o", 2)
    double(order)
    assert order.count == 4


async def test_failures_are_tried_again_and_rest_in_the_dead_letters(app: App) -> None:
    tries: list[tuple[str, int]] = []
    dead: list[tuple[str, str]] = []
    orders = app.publisher("orders", str)

    @app.consumer("orders", group="billing", max_reconsume_times=2)
    async def bill(order: str, message: MessageExt) -> ConsumeResult:
        tries.append((order, message.tries))
        if order == "later" and message.tries < 3:
            raise RetryLater(60)
        if order == "hopeless":
            raise DeadLetter("out of stock")
        if order == "broken":
            raise LookupError(order)
        return ConsumeResult.SUCCESS

    @app.dead_letters("billing")
    def bury(order: str, message: MessageExt) -> None:
        dead.append((order, message.properties["CONSUME_ERROR_TEXT"]))

    async with in_memory(app) as memory:
        for text in ("later", "hopeless", "broken"):
            await orders.send(text)
        await memory.settled()
        assert [message.body for message in memory.dead_letters("billing")] == [b"hopeless", b"broken"]
        assert memory.dead_letters("billing")[0].topic == "%DLQ%billing"
    assert tries == [*(("later", n) for n in (1, 2, 3)), ("hopeless", 1), *(("broken", n) for n in (1, 2, 3))]
    assert dead == [("hopeless", "gantrymq.client.results.DeadLetter: out of stock"), ("broken", "LookupError: broken")]


async def test_a_body_that_is_no_payload_is_a_dead_letter_at_once(app: App) -> None:
    called = False

    @app.consumer("orders", group="billing")
    async def bill(order: Order) -> None:
        nonlocal called
        called = True

    async with in_memory(app) as memory:
        await memory.send(Message("orders", b'{"id": "o"}'))
        await memory.settled()
        (letter,) = memory.dead_letters("billing")
        assert "count: it is missing" in letter.properties["CONSUME_ERROR_TEXT"]
    assert not called


async def test_interceptors_and_the_lifespan_go_around(app: App) -> None:
    seen: list[str] = []

    class Watch(Interceptor):
        async def send(self, call: Any, proceed: Any) -> Any:
            seen.append(f"send {call.messages[0].topic}")
            return await proceed()

        async def consume(self, call: Any, proceed: Any) -> Any:
            seen.append(f"consume {call.group}")
            return await proceed()

    @contextlib.asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[None]:
        seen.append("open")
        yield
        seen.append("closed")

    app = App(NOWHERE, interceptors=[Watch()], lifespan=lifespan)

    @app.consumer("t", group="g")
    def listen(body: bytes) -> None: ...

    async with in_memory(app) as memory:
        future = await app.publisher("t", bytes).send_soon(b"x")
        assert future.done()
        await memory.settled()
    assert seen == ["open", "send t", "consume g", "closed"]


async def test_mistakes_show_where_they_are_made(app: App) -> None:
    @app.consumer("a", group="g", concurrency=2)
    def first(body: bytes) -> None: ...

    def twice(body: bytes, what: int) -> None: ...
    def nothing() -> None: ...
    def many(*bodies: bytes) -> None: ...
    def odd(body: complex) -> None: ...

    for wrong, told in ((twice, "what is what"), (nothing, "takes nothing"), (many, "plain"), (odd, "no payload")):
        with pytest.raises(ConfigError, match=told):
            app.consumer("t", group="other")(wrong)
    with pytest.raises(ConfigError, match="the same options"):
        app.consumer("b", group="g")(first)
    with pytest.raises(ConfigError, match="has a handler of a"):
        app.consumer("a", group="g", concurrency=2)(first)
    with pytest.raises(ConfigError, match="its own group"):
        app.dead_letters("x", by="g", concurrency=2)(first)
    with pytest.raises(ConfigError, match="concurrency"):
        app.consumer("a", group="h", concurrency=0)
    with pytest.raises(ConfigError, match="no consumer"):
        await App(NOWHERE).run()
    with pytest.raises(WrongType, match="Order is published here"):
        app.publisher("t", Order).message("text")  # type: ignore[arg-type]
    app.consumer("s", group="sql", sql="a > 1")(first)
    with pytest.raises(ConfigError, match="only a broker"):
        async with in_memory(app):
            raise AssertionError
