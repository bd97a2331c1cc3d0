"""`gantry admin ha` with three brokers in sync and etcd: what it shows, and what it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.failover.groups import running
from tests.faults.failover.recorded import gantry
from tests.faults.kit.replicas import is_master
from tests.harness import LocalCluster
from tests.servers.etcd import etcd
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def answer(capsys: pytest.CaptureFixture[str], peer: LocalCluster, verb: str, *more: str) -> Any:
    ran = gantry(capsys, peer, verb, "--json", *more)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def settled(capsys: pytest.CaptureFixture[str], peer: LocalCluster) -> Any:
    """The first status in which all slaves have told the same end of their logs, and each may take over."""
    seen: list[Any] = []

    def look() -> bool:
        seen[:] = [answer(capsys, peer, "status")]
        slaves = seen[0]["members"][1:]
        return (
            all(each["has_told"] and not each["refusal"] for each in slaves)
            and len({each["log_end"] for each in slaves}) == 1
        )

    wait_until(look)
    return seen[0]


def both(text: str, *lines: str) -> bool:
    return all(line in text for line in lines)


def test_an_administrator_looks_pauses_resumes_and_switches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with etcd(tmp_path / "etcd") as members, running(tmp_path, capsys, members) as scene:
        master = scene.brokers[0]
        told = settled(capsys, master)
        # Which slave joined first is not known, and the lower id goes before.
        order = [each["address"] for each in told["members"][1:]]
        first, second = (slave for address in order for slave in scene.brokers if slave.broker_address == address)
        assert told["next_master"] == first.broker_address
        assert gantry(capsys, master, "join").code == 0  # all have: it says so, and changes nothing
        members = answer(capsys, master, "members")["members"]
        assert {each["address"] for each in members} == {*order, master.broker_address}
        # A slave that is late for a moment is not able then, so what is explained may take a second look.
        wait_until(
            lambda: both(
                gantry(capsys, master, "explain").out,
                f"{first.broker_address} would take over by itself in about 4 s",
                f"{second.broker_address}: could take over, after the better one",
            )
        )
        answer(capsys, master, "pause", "--why", "a new disk", "--who", "ops")
        assert "ops has paused failover since" in gantry(capsys, master, "status").out
        refused = gantry(capsys, master, "switchover")
        assert refused.code != 0 and "ha resume" in refused.err
        answer(capsys, master, "resume")
        none = gantry(capsys, master, "switchover", "--cancel")
        assert none.code == 1 and "no switchover" in none.err
        moved = answer(capsys, master, "switchover", "--to", second.broker_address)
        assert (moved["master"], moved["epoch"]) == (second.broker_address, 2)
        wait_until(lambda: is_master(second))
        status = answer(capsys, master, "status")
        assert status["state"] == "open"
        assert (status["master"], status["changes"][0]["reason"]) == (second.broker_address, "switchover")
