"""A group that loses its master in every way at hand, and takes over by itself: nothing acknowledged is lost.

pytest tests/faults/failover/test_rounds.py -s --rounds 100 --seed 7 --timeout 0
"""

from __future__ import annotations

import contextlib
import itertools
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.failover.commits import Committer, lost_commits
from tests.faults.failover.diary import Calm, Diary
from tests.faults.failover.group import LEASE_S, Group, group
from tests.faults.failover.later import TOPIC as LATER
from tests.faults.failover.later import Later, not_come
from tests.faults.failover.nemesis import ALL, Nemesis, kill_master, stop_master
from tests.faults.kit.nodes import Node
from tests.faults.kit.replicas import TOPIC, make_topic, runtime_info
from tests.faults.replication.history import Log, check, left_out, out_of_turn
from tests.faults.replication.logs import read_log
from tests.faults.replication.reader import Reader
from tests.faults.replication.recorder import Pace, Recorder, acknowledged, sending
from tests.waiting import wait_until

ROUNDS = 2
FIRST: tuple[Nemesis, ...] = (kill_master, stop_master)  # of a short run: it shows that somebody takes over
LASTS_S = (0.5, 3.0 * LEASE_S)
TOLD_S = 3.0 * LEASE_S  # without an accepted send: what happened then is printed
LONG_S, LONG_SHARE = 60.0, 0.04  # longer than any wait of a broker or client
READ_EVERY_S = 0.5
CALM_S = 4.0 * LEASE_S  # also longer than a log of a little waits for the disk by itself
SILENT_S, SILENT_SHARE = 2.5 * LEASE_S, 0.5
STARVED_S = LEASE_S / 3  # a renewal later than that is one left out


@pytest.mark.slow
def test_rounds_of_every_fault_lose_nothing(tmp_path: Path, seed: int, request: pytest.FixtureRequest) -> None:
    pace, calms = Pace(), list[Calm]()
    dice, rounds = random.Random(seed), request.config.getoption("--rounds", default=None) or ROUNDS
    with group(tmp_path) as scene:
        name_server = scene.brokers[0].namesrv_address
        for topic in (TOPIC, LATER):
            make_topic(scene.settled(), topic)
        with Reader(TOPIC, name_server) as reader, Reader(TOPIC, name_server, ordered=True) as ordered:
            with (
                sending(scene.brokers, TOPIC, pace) as recorders,
                Committer(TOPIC, lambda: serving(recorders), pace) as committer,
                Later(name_server, pace) as later,
                Diary(scene.logs) as diary,
            ):
                for number in range(rounds):
                    began = time.monotonic()
                    master = settled(scene, recorders)
                    if number % 2 == 1:
                        calms.append(calm(diary, pace, dice))
                    told = strike(scene, master, diary, dice, FIRST if number < len(FIRST) else ALL, number)
                    pace.is_quiet = pace.is_silent = False
                    after = settled(scene, recorders)
                    told += ", stays" if after is master else f", {after.node} is the master"
                    lasted = f"{acknowledged(recorders)} acknowledged, {time.monotonic() - began:.0f} s"
                    gaps = diary.long_gaps(recorders, began, TOLD_S)
                    print(f"{number}: {told}; {lasted}", *gaps, sep="\n", flush=True)
                master = settled(scene, recorders)
            logs = final_logs(scene, later, [reader, ordered], master)
    log = next(each for each in logs if each.member == master.broker_address)
    sends = [send for recorder in recorders for send in recorder.sends]
    come = Counter(each.body for each in log.stored if each.queue.topic == LATER)
    tell(recorders, reader, later, committer)
    tell_calm(calms)
    findings = [
        *check(sends, logs, master.broker_address, [*reader.delivered, *ordered.delivered]),
        *out_of_turn(ordered.delivered),
        *left_out(reader.delivered, log, TOPIC),
        *left_out(ordered.delivered, log, TOPIC),
        *lost_commits(committer.seen),
        *not_come(later.due, later.never, come),
        *(found for each in calms for found in each.findings(STARVED_S)),
    ]
    assert findings == [], f"--seed {seed} --rounds {rounds}"


def strike(
    scene: Group, master: Node, diary: Diary, dice: random.Random, nemeses: Sequence[Nemesis], number: int
) -> str:
    """One to three faults at once, for a while; then all is well."""
    if nemeses is FIRST:
        chosen = [FIRST[number]]
    else:
        chosen = dice.sample(nemeses, dice.choice((1, 1, 2, 2, 3)))
    told = []
    for nemesis in chosen:
        told.append(nemesis(scene, master, dice))
        diary.note(f"FAULT of round {number}: {told[-1]}")
        time.sleep(dice.random() * dice.choice((0.0, 1.0, LEASE_S)))  # the dice say when the next one comes
    if nemeses is FIRST:
        wait_until(lambda: any(each is not master for each in scene.masters()))
    else:
        lasts_s = LONG_S if dice.random() < LONG_SHARE else dice.uniform(*LASTS_S)
        told.append(f"{lasts_s:.1f} s")
        time.sleep(lasts_s)  # and for how long all of it lasts
    diary.note("HEAL")
    scene.heal()
    diary.note("all is as it was")
    return ", ".join(told)


def calm(diary: Diary, pace: Pace, dice: random.Random) -> Calm:
    """Some leases with about one message a second, and maybe some with none; what comes next strikes a quiet group."""
    began, pace.is_quiet = time.monotonic(), True
    time.sleep(CALM_S)  # what happens by itself takes that long
    if dice.random() < SILENT_SHARE:
        pace.is_silent = True
        time.sleep(SILENT_S)  # the paths have to be idle for longer than leases last
    return diary.calm(began)


def settled(scene: Group, recorders: Sequence[Recorder]) -> Node:
    """The master, and it takes messages."""
    scene.settled()
    enough = acknowledged(recorders) + 20
    wait_until(lambda: acknowledged(recorders) >= enough)  # by whichever it is: on a busy machine it may change again
    return scene.settled()


def serving(recorders: Sequence[Recorder]) -> str:
    """The address that accepted a message last, "" at first."""
    last = [recorder.last_acknowledged for recorder in recorders]
    latest = max((each for each in last if each is not None), default=None, key=lambda each: each[0])
    return "" if latest is None else latest[1]


def final_logs(scene: Group, later: Later, readers: Sequence[Reader], master: Node) -> list[Log]:
    """All logs, once what is due has come, consumers have it all, and the members are alike. What never comes is the
    checker's to find."""

    def has_come() -> bool:
        time.sleep(READ_EVERY_S)  # brokers and readers need the cores that reading takes
        log = read_log("", master.store)
        come = Counter(each.body for each in log.stored if each.queue.topic == LATER)
        is_left_out = any(left_out(list(reader.delivered), log, TOPIC) for reader in readers)
        return not is_left_out and not any(not_come(later.due, [], come))

    with contextlib.suppress(TimeoutError):
        wait_until(has_come)
    wait_until(lambda: len({runtime_info(each).get("commitLogMaxOffset") for each in scene.brokers}) == 1)
    return [read_log(each.broker_address, each.store) for each in scene.brokers]


def tell_calm(calms: Sequence[Calm]) -> None:
    starved = [each for each in calms if each.is_etcd_starved or each.late_s >= STARVED_S]
    steps = sum(len(each.steps_down) for each in starved)
    print(f"{len(calms)} quiet stretches, {len(starved)} of them starved, with {steps} steps down")


def tell(recorders: Sequence[Recorder], reader: Reader, later: Later, committer: Committer) -> None:
    """The figures of a run."""
    times = sorted(at for recorder in recorders for at in recorder.acknowledged_at)
    gaps = sorted((after - before for before, after in itertools.pairwise(times)), reverse=True)
    counts = Counter(send.answer.value for recorder in recorders for send in recorder.sends)
    print(
        f"{dict(counts)}, {len(reader.delivered)} delivered, {len(later.due)} later ones, {len(committer.seen)} offsets"
    )
    long = [gap for gap in gaps if gap > 1]
    if long:
        print(
            f"{len(long)} times without an accepted send for over 1 s: median {statistics.median(long):.1f} s, "
            f"longest {', '.join(f'{gap:.1f}' for gap in long[:8])} s"
        )
