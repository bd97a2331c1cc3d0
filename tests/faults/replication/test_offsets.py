"""The master is killed while consumers commit: the promoted slave's offsets are at most a second's commits back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.peer import Peer, connected
from tests.faults.kit.replicas import FILES, TOPIC, promote, replicated, runtime_info
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

LOST_S_MAX = 1.0
COMMITTING_S = 3.0
PAUSE_S = 0.002
TURNS = 10  # of a starved broker's loop, between the moment at which a state was due and when it is out
GROUPS = ("Readers", "Writers", "Late")
SETTINGS = FILES | {"slavesEnable": "true", "haHousekeepingInterval": "600000"}  # a starved slave is not cut off


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[LocalCluster]]:
    with replicated(tmp_path, SETTINGS, slaves=1) as members:
        yield members


@dataclass
class Commits:
    """When the master acknowledged a commit: the offset of each, in order, is its place here, from 1 on."""

    at: list[float] = field(default_factory=list)

    def lost_s(self, offset: int, killed_at: float) -> float:
        """How old the oldest commit was that the slave lacks."""
        return killed_at - self.at[offset] if offset < len(self.at) else 0.0

    @property
    def standstill_s(self) -> float:
        """The longest time without an answer: neither this process nor the master had a core, or not for long."""
        return max(later - before for before, later in zip(self.at, self.at[1:], strict=False))


async def commit_for(address: str, seconds: float) -> dict[str, Commits]:
    """One commit after another, of each group in turn."""
    commits = {group: Commits() for group in GROUPS}
    async with connected(int(address.rpartition(":")[2])) as peer:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for group, acknowledged in commits.items():
                await _commit(peer, group, len(acknowledged.at) + 1)
                acknowledged.at.append(time.monotonic())
            await asyncio.sleep(PAUSE_S)
    return commits


async def _commit(peer: Peer, group: str, offset: int) -> None:
    fields = {"consumerGroup": group, "topic": TOPIC, "queueId": "0", "commitOffset": str(offset)}
    answer = await peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    assert answer.code == ResponseCode.SUCCESS, answer.remark


async def offsets_at(address: str) -> dict[str, int]:
    found = {}
    async with connected(int(address.rpartition(":")[2])) as peer:
        for group in GROUPS:
            fields = {"consumerGroup": group, "topic": TOPIC, "queueId": "0"}
            answer = await peer.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            found[group] = int(answer.ext_fields["offset"])
    return found


@pytest.mark.slow
def test_offsets_step_back_by_a_seconds_commits_at_most(pair: list[LocalCluster]) -> None:
    """What the master was not given of the machine is allowed for: while it stood still, its commits did, too."""
    master, slave = pair
    with Recorder("p", TOPIC, lambda: master.broker_address, body_bytes=1000) as load:
        load.more()
        commits = asyncio.run(commit_for(master.broker_address, COMMITTING_S))
        killed_at = time.monotonic()
        master.kill_broker()
        wait_until(lambda: runtime_info(slave).get("slaveState", "copying") != "copying")  # all that came is taken
        changed = promote(slave)
        wait_until(lambda: runtime_info(slave).get("epoch") == str(changed.epoch))
        offsets = asyncio.run(offsets_at(slave.broker_address))
    for group, acknowledged in commits.items():
        lost_s, standstill_s = acknowledged.lost_s(offsets[group], killed_at), acknowledged.standstill_s
        assert 0 < offsets[group] <= len(acknowledged.at)
        assert lost_s <= LOST_S_MAX + TURNS * standstill_s, (
            f"{group}: {len(acknowledged.at) - offsets[group]} commits lost, the first {lost_s:.2f} s old"
        )
