"""A broker of two is drained under load: no producer sees an error, no message is lost, and it comes back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.own_files import ROOT
from gantrymq import AdminClient, Message, Producer, PushConsumer, SendStatus
from gantrymq.message.model import MessageExt
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance_process import RunningAppliance, shared_appliance
from tests.waiting import until

TOPIC, GROUP = "Drained", "drainers"
DRAINED = "broker-a"
QUICK = ("--routes", "2")  # this producer goes on elsewhere as soon as a broker says so


gantry = shared_appliance("--brokers", "2")


class Load:
    """Sends without a pause, and counts; each message has its number."""

    def __init__(self, namesrv: str) -> None:
        self.sent: set[bytes] = set()
        self.brokers: list[str] = []
        self._namesrv = namesrv

    async def run(self) -> None:
        async with Producer(self._namesrv, group="load") as producer:
            for number in range(1_000_000):
                result = await producer.send(Message(TOPIC, b"%d" % number))
                assert result.status is SendStatus.SEND_OK
                self.sent.add(b"%d" % number)
                self.brokers.append(result.queue.broker_name)


class Seen:
    """A listener that takes what comes, at most one at a time while `slow`."""

    def __init__(self) -> None:
        self.bodies: set[bytes] = set()

    async def __call__(self, messages: list[MessageExt]) -> None:
        self.bodies |= {each.body for each in messages}


async def admin(gantry: RunningAppliance, *words: str) -> tuple[int, str]:
    command = (
        sys.executable,
        "-P",
        "-m",
        "appliance",
        "admin",
        words[0],
        "--data",
        gantry.data,
        *words[1:],
        "-n",
        gantry.namesrv,
    )
    process = await asyncio.create_subprocess_exec(
        *command, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    out = ""
    while line := (await process.stdout.readline()).decode():
        print(line, end="")  # for who reads why the test timed out
        out += line
    return await process.wait(), out


async def test_a_drain_under_load_loses_nothing_stops_the_broker_and_is_undone(gantry: RunningAppliance) -> None:
    load, seen = Load(gantry.namesrv), Seen()
    async with AdminClient(gantry.namesrv) as client:
        await client.topics.create(TopicConfig(TOPIC, read_queue_nums=4, write_queue_nums=4))
    consumer = PushConsumer(gantry.namesrv, group=GROUP, listener=seen)
    consumer.subscribe(TOPIC)
    async with consumer:
        sending = asyncio.create_task(load.run())
        try:
            await until(lambda: sending.done() or {"broker-a", "broker-b"} <= set(load.brokers))
            code, out = await admin(gantry, "drain", DRAINED, "--dry-run")
            assert code == 0 and not (Path(gantry.data) / "brokers" / DRAINED / "held").exists(), out
            code, out = await admin(gantry, "drain", DRAINED, "--stop", "--yes", *QUICK)
            assert code == 0, out
            assert f"{DRAINED} is drained and stopped" in out
            assert len(gantry.workers("broker")) == 1
            after = len(load.brokers)
            await until(lambda: sending.done() or len(load.brokers) > after + 100)
            assert set(load.brokers[after + 1 :]) == {"broker-b"}
            code, out = await admin(gantry, "undrain", DRAINED)
            assert (code, out.splitlines()[-1]) == (0, f"{DRAINED} runs again and accepts writes")
            assert not (Path(gantry.data) / "brokers" / DRAINED / "held").exists()
        finally:
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
        await until(lambda: load.sent <= seen.bodies)
    async with Producer(gantry.namesrv, group="afterwards") as producer:

        async def reaches() -> bool:
            results = [await producer.send(Message(TOPIC, b"again")) for _ in range(8)]
            return DRAINED in {each.queue.broker_name for each in results}

        while not await reaches():
            await asyncio.sleep(0.1)  # this producer has no event for a new route


async def test_a_group_that_does_not_go_on_is_named_and_the_broker_keeps_running(gantry: RunningAppliance) -> None:
    stuck = asyncio.Event()

    async def never(messages: list[MessageExt]) -> None:
        await stuck.wait()

    async with AdminClient(gantry.namesrv) as client, Producer(gantry.namesrv, group="load") as producer:
        await client.topics.create(TopicConfig("Stuck", read_queue_nums=1, write_queue_nums=1))
        address = (await client.cluster.masters())[DRAINED]
        consumer = PushConsumer(gantry.namesrv, group="stuck", listener=never)
        consumer.subscribe("Stuck")
        async with consumer:
            for number in range(4):
                await producer.send(Message("Stuck", b"%d" % number))
            await until(lambda: True)
            code, out = await admin(gantry, "drain", DRAINED, "--stop", "--yes", "--wait", "3", "--routes", "1")
            assert (code, "stuck (" in out, "was not stopped" in out) == (1, True, True), out
            assert (await client.brokers.config(address))["brokerPermission"] == "4"
            code, out = await admin(gantry, "undrain", DRAINED)
            assert (code, out.splitlines()[-1]) == (0, f"{DRAINED} accepts writes")
            stuck.set()


async def test_a_broker_of_another_machine_is_not_stopped_from_here(gantry: RunningAppliance, tmp_path: Path) -> None:
    code, out = await admin(gantry, "drain", DRAINED, "--stop", "--yes", "--data", str(tmp_path))
    assert code == 2
    assert "run the command where it runs" in out
