"""An application at a running broker."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from gantrymq import App, ConsumeFrom, ConsumeResult, DeadLetter, Message, MessageExt, Producer, PushConsumer
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConfigError
from tests.gantrymq.client.seen import until
from tests.harness import serving

FIRST = ConsumeFrom.FIRST_OFFSET


@dataclass
class Order:
    id: str
    count: int = 1


async def test_consumers_of_one_group_share_a_client_and_publishers_reach_them(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        app = App(cluster.namesrv_address, namespace="shop")
        orders, bills = app.publisher("orders", Order), app.publisher("bills", str)
        billed: list[Order] = []
        told: list[tuple[str, str]] = []
        dead: list[tuple[Order, str]] = []

        @app.consumer("orders", group="billing", consume_from=FIRST)
        def bill(order: Order) -> None:
            if order.count == 0:
                raise DeadLetter("nothing to bill")
            billed.append(order)
            bills.send_blocking(f"bill of {order.id}", keys=order.id)
            with pytest.raises(ConfigError, match="runs already"):
                asyncio.run(app.start())

        @app.consumer("bills", group="billing", consume_from=FIRST)
        async def tell(text: str, message: MessageExt) -> None:
            with pytest.raises(ConfigError, match="await send"):
                bills.send_blocking("blocks")
            told.append((message.topic, text))

        @app.dead_letters("billing", consume_from=FIRST)
        async def bury(order: Order, message: MessageExt) -> ConsumeResult:
            dead.append((order, message.properties["CONSUME_ERROR_TEXT"].rpartition(": ")[2]))
            return ConsumeResult.SUCCESS

        async with app:
            await orders.send(Order("o-1"))
            await (await orders.send_soon(Order("o-2", 0)))
            await until(lambda: bool(told and dead))
            with pytest.raises(ConfigError, match="before"):
                app.consumer("late", group="late")
            async with AdminClient(cluster.namesrv_address) as admin:
                members = await admin.clients.consumers_at(cluster.broker_address, "shop%billing")
            assert len(members.connection_set) == 1
            assert {"shop%orders", "shop%bills"} < set(members.subscription_table)
        assert billed == [Order("o-1")]
        assert told == [("bills", "bill of o-1")]
        assert dead == [(Order("o-2", 0), "nothing to bill")]
        async with app:  # once more
            await orders.send(Order("o-3"))
            await until(lambda: len(told) == 2)


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_dead_letter_leaves_at_once_and_holds_nothing_up(tmp_path: Path, ordered: bool) -> None:
    done: list[bytes] = []

    def listener(messages: list[MessageExt]) -> None:
        done.extend(message.body for message in messages)
        bad = [message for message in messages if message.body == b"bad"]
        if bad:
            raise DeadLetter("bad", bad)

    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        async with Producer(cluster.namesrv_address) as producer:
            await producer.send_many([Message("T", body) for body in (b"1", b"bad", b"2")], sharding_key="k")
        consumer = PushConsumer(
            cluster.namesrv_address, group="g", listener=listener, ordered=ordered, batch_size=3, consume_from=FIRST
        )
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: cluster.broker.store.max_offset("%DLQ%g", 0) == 1)
        (letter,), *_ = await admin.messages.pull_at(cluster.broker_address, "%DLQ%g", 0, 0, 8)
        assert (letter.body, letter.properties["CONSUME_ERROR_TEXT"]) == (
            b"bad", "gantrymq.client.results.DeadLetter: bad",
        )  # fmt: skip
        assert sorted(done) == [b"1", b"2", b"bad"]
        written = await admin.offsets.stats_at(cluster.broker_address, "g", "T")
        assert sum(at.consumer_offset for at in written.offset_table.values()) == 3
