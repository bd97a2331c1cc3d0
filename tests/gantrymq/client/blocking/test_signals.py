"""A process that is asked to end: what is being handled may end and is committed, the rest comes again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import AdminClient, Message, MessageQueue, PushConsumer, SyncProducer
from gantrymq.errors import ConfigError
from tests.gantrymq.client.blocking.programs import ENVIRONMENT, FOLDER, LIMIT_S
from tests.gantrymq.client.ports import closed_port


def said_after(number: signal.Signals, at: str, peer: Peer, topic: str, count: int, *words: str) -> list[str]:
    """What the program says, of so many messages, once it got the signal at its first line that begins like this."""
    rpc.create_topic(peer.broker_address, topic, 1)
    with SyncProducer(peer.namesrv_address) as producer:
        producer.send_many([Message(topic, b"%d" % each) for each in range(count)])
    command = [sys.executable, str(FOLDER / "serving.py"), peer.namesrv_address, topic, *words]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert program.stdout is not None
        assert any(line.startswith(at) for line in iter(program.stdout.readline, ""))
        program.send_signal(number)
        rest, errors = program.communicate(timeout=LIMIT_S)
    finally:
        program.kill()
        program.wait()
    assert (program.returncode, errors) == (0, "")
    return rest.splitlines()


@pytest.mark.parametrize(("kind", "number"), [("sync", signal.SIGTERM), ("async", signal.SIGINT)])
@pytest.mark.parametrize("peer", ["gantry"], indirect=True)
async def test_a_signal_lets_the_call_in_progress_end(peer: Peer, kind: str, number: signal.Signals) -> None:
    topic = f"serving-{kind}"
    lines = await asyncio.to_thread(said_after, number, "begun 0", peer, topic, 5, kind, "0.3")
    handled = sum(line.startswith("handled") for line in lines)
    assert lines[0] == "handled 0"
    assert lines[-1] == "closed 0"
    async with AdminClient(peer.namesrv_address) as admin:
        stats = await admin.offsets.stats_at(peer.broker_address, topic, topic)
        assert stats.offset_table[MessageQueue(topic, peer.broker_name, 0)].consumer_offset == handled


@pytest.mark.parametrize("peer", ["gantry"], indirect=True)
def test_a_listener_that_blocks_the_loop_gets_no_further_message_after_the_signal(peer: Peer) -> None:
    """The loop comes to nothing else while there are messages: only a flag that the signal's handler sets is seen."""
    count = 100
    lines = said_after(signal.SIGTERM, "handled", peer, "serving-blocking", count, "blocking", "0.5")
    assert sum(line.startswith("begun") for line in lines) < count / 10  # what came before the signal
    assert lines[-1] == "closed 0"


def test_only_the_main_thread_may_wait_for_signals() -> None:
    before = signal.getsignal(signal.SIGTERM)
    failures: list[BaseException] = []

    def run() -> None:
        consumer = PushConsumer(closed_port(), group="g", listener=print)
        consumer.subscribe("T")
        try:
            asyncio.run(consumer.run())
        except ConfigError as exc:
            failures.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "main thread" in str(failures[0])
    assert signal.getsignal(signal.SIGTERM) is before
