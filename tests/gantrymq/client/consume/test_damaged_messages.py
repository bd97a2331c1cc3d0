"""Damage in a broker's commit log: consumers skip exactly what is damaged, say so, and go on."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from appliance.__main__ import main
from gantrymq import ConsumeFrom, ConsumeResult, LostMessage, MessageExt, MessageModel, MessageQueue
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.consume.pull_consumer import PullConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.connection import Answered
from tests.gantrymq.client.seen import until
from tests.gantrymq.damaged_log import BODY_AT, COUNT, DAMAGE, Log, Spoil, body_byte, neighbours, page, spoilt


def number_of(message: MessageExt) -> int:
    return int(message.body.split()[0])


def lines_of(caplog: pytest.LogCaptureFixture, logger: str) -> list[logging.LogRecord]:
    return [
        line for line in caplog.records if getattr(line, "event", "") == "message_lost" and line.name.startswith(logger)
    ]


@pytest.mark.parametrize("spoil", DAMAGE)
async def test_a_pull_consumer_polls_what_is_whole(
    tmp_path: Path, spoil: Spoil, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[LostMessage] = []
    seen: list[MessageExt] = []
    async with spoilt(tmp_path, spoil) as (cluster, lost):
        expected = [number for number in range(COUNT) if number not in lost]
        async with PullConsumer(
            cluster.namesrv_address, group="g", consume_from=ConsumeFrom.FIRST_OFFSET, on_message_lost=told.append
        ) as consumer:
            queue = MessageQueue("T", cluster.broker.config.broker_name, 0)
            await consumer.assign([queue])

            async def poll() -> None:
                while len(seen) < len(expected) or len(told) < len(lost):
                    seen.extend(await consumer.poll(1.0))

            await asyncio.wait_for(poll(), 60)
            await consumer.commit()
            await until(lambda: len(told) == len(lost))
            assert await consumer.committed(queue) == COUNT
        units = cluster.broker.store.consume_queue_units("T", 0, 0, COUNT)
        async with AdminClient(cluster.namesrv_address) as admin:
            info = await admin.brokers.runtime_info(cluster.broker_address)
    assert [number_of(message) for message in seen] == expected
    assert [message.queue_offset for message in seen] == expected
    assert [each.queue_offset for each in told] == sorted(lost)
    assert {each.queue for each in told} <= {queue}
    lines = lines_of(caplog, "gantrymq")
    assert [vars(line)["queue_offset"] for line in lines] == sorted(lost)
    assert all(vars(line)["topic"] == "T" and vars(line)["group"] == "g" for line in lines)
    damaged = sorted(lost) or [77, 78]  # the broker has looked, too: their places in queue and log
    lines = lines_of(caplog, "store")
    assert [vars(line)["queue_offset"] for line in lines] == damaged
    assert [vars(line)["physical_offset"] for line in lines] == [units[number].physical_offset for number in damaged]
    assert info["messagesDamaged"] == str(len(damaged))
    place = units[damaged[-1]].physical_offset
    assert info["messagesDamagedLast"] == f"T-0 queue offset {damaged[-1]} physical offset {place}"


@pytest.mark.parametrize("spoil", [body_byte, neighbours, page])
@pytest.mark.parametrize(
    "options", [{}, {"ordered": True}, {"model": MessageModel.BROADCASTING}, {"concurrency": 1, "batch_size": 10}]
)
async def test_a_push_consumer_goes_on_behind_damage(tmp_path: Path, spoil: Spoil, options: dict[str, object]) -> None:
    told: list[LostMessage] = []
    seen: list[int] = []

    async def listen(messages: list[MessageExt]) -> ConsumeResult:
        seen.extend(number_of(message) for message in messages)
        return ConsumeResult.SUCCESS

    async with spoilt(tmp_path, spoil) as (cluster, lost):
        consumer = PushConsumer(
            cluster.namesrv_address,
            group="g",
            listener=listen,
            consume_from=ConsumeFrom.FIRST_OFFSET,
            offsets_folder=tmp_path / "offsets",
            on_message_lost=told.append,
            **options,  # type: ignore[arg-type]
        )
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: len(seen) >= COUNT - len(lost) and len(told) >= len(lost))
        if options.get("ordered"):
            assert seen == sorted(seen)
        assert sorted(seen) == [number for number in range(COUNT) if number not in lost]
        assert [each.queue_offset for each in told] == sorted(lost)
        if "model" not in options:
            assert cluster.broker.offsets.query("g", "T", 0) == COUNT


async def test_what_was_torn_at_the_first_read_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a second pull tells."""
    asked: list[tuple[str, str]] = []
    invoke_for = RemotingClient.invoke_for
    async with spoilt(tmp_path, body_byte) as (cluster, _lost):
        (damaged,) = cluster.broker.store.consume_queue_units("T", 0, 100, 1)

        async def counting(
            client: RemotingClient, answered: Answered, address: str, request: RemotingCommand, *, timeout_s: float
        ) -> None:
            if request.code == RequestCode.PULL_MESSAGE:
                asked.append((request.ext_fields["queueOffset"], request.ext_fields["maxMsgNums"]))
                if asked[-1][1] == "1":
                    Log(tmp_path / "store").flip(damaged.physical_offset + BODY_AT + 3)
            await invoke_for(client, answered, address, request, timeout_s=timeout_s)

        monkeypatch.setattr(RemotingClient, "invoke_for", counting)
        async with PullConsumer(cluster.namesrv_address, group="g", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
            await consumer.assign([MessageQueue("T", cluster.broker.config.broker_name, 0)])
            seen: list[int] = []
            while len(seen) < COUNT:
                seen += [number_of(message) for message in await consumer.poll(5.0)]
    assert seen == list(range(COUNT))
    assert ("100", "1") in asked


async def test_a_shell_says_a_broker_has_damaged_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with spoilt(tmp_path, body_byte) as (cluster, _lost):
        queue = MessageQueue("T", cluster.broker.config.broker_name, 0)
        async with PullConsumer(cluster.namesrv_address, group="g", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
            await consumer.assign([queue])
            seen = 0
            while seen < COUNT - 1:
                seen += len(await consumer.poll(1.0))
        command = ["admin", "--namesrv", cluster.namesrv_address, "cluster"]
        assert await asyncio.to_thread(main, command) == 0
    shown = capsys.readouterr().out
    assert "has damaged messages on its disk: 1 found since its start, the last at T-0 queue offset 100" in shown
