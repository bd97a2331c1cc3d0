"""Messages that wait for a time of their own, in a folder that Apache's 4.9 broker has meanwhile.

It knows neither the timer nor its folder: it starts, serves, leaves all of it alone and delivers none. Back with us the
messages arrive, those that came due meanwhile at once, even where Apache has written the timer's queue anew after a
crash, in its own way.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.frames import send_fields
from gantrymq.message import record
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.interop.at_once import at_once as at_once
from tests.interop.clients import JavaClient
from tests.interop.stores.one_store import OneStore
from tests.peers.dispatch import wait_dispatched
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[3]
TOPIC = "TimedBothWays"
SOON, LATER = 40, 40


@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
def test_what_waits_outlives_a_time_with_apaches_broker(
    request: pytest.FixtureRequest, at_once: Callable[[pytest.Item], None], kill: bool
) -> None:
    at_once(request.node)


def run_case(tmp_path: Path, java: JavaClient, kill: bool) -> None:
    with OneStore(tmp_path) as one:
        one.open("gantry")
        rpc.create_topic(one.address, TOPIC, 1)
        due: dict[bytes, int] = {}
        for number in range(SOON + LATER):
            due[b"timed-%d" % number] = send_at(one, number, time.time() + (10 if number < SOON else 40) + number / 50)
        time.sleep(1.5)  # our timer has put them into its files, and none is due
        one.leave(kill=kill)
        early = len(one.at_rest().get((TOPIC, 0), []))  # on a machine so busy that some came due

        one.open("apache")
        send(one, b"plain", "KEYS\x01plain")
        while time.time() < min(due.values()) / 1000 + 2:
            time.sleep(0.1)
        wait_dispatched(one.address)
        assert bodies(one)[early:] == [b"plain"], "Apache delivers none of them"
        one.leave(kill=kill)

        one.open("gantry")
        deadline = time.monotonic() + WITHIN_S
        while not due.keys() <= set(arrived := bodies(one)):
            assert time.monotonic() < deadline, f"{len(due.keys() - set(arrived))} did not come"
            time.sleep(0.2)
        for raw in one.read_queue(TOPIC, 0):
            message = record.decode_record(raw)
            if message.body in due:
                assert message.store_timestamp >= due[message.body]
        if not kill:
            assert len(arrived) == len(due) + 1, "none comes twice"
        one.leave(kill=False)
        command = [sys.executable, "-m", "appliance", "store", "verify", str(one.folder)]
        verified = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert verified.returncode == 0, verified.stdout + verified.stderr


def send_at(one: OneStore, number: int, deliver_at: float) -> int:
    due_ms = int(deliver_at * 1000)
    send(one, b"timed-%d" % number, f"KEYS\x01key-{number}\x02TAGS\x01timed\x02TIMER_DELIVER_MS\x01{due_ms}")
    return due_ms


def send(one: OneStore, body: bytes, properties: str) -> None:
    fields = send_fields("senders", TOPIC, 0, properties)
    with rpc.connect(one.address) as connection:
        answer = rpc.call(connection, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields, body))
    assert answer.code == ResponseCode.SUCCESS, answer.remark


def bodies(one: OneStore) -> list[bytes]:
    return [record.decode_record(raw).body for raw in one.read_queue(TOPIC, 0)]
