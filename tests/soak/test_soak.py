"""Producers and groups of consumers go through every fault: nothing is lost, order is kept, nothing grows.

A usual run has each fault once, but for the restart, in some fifteen seconds of a quiet machine. `pytest tests/soak -s
--soak-seconds 600` goes on for ten minutes, in another order each round, and compares memory, too.
"""

from __future__ import annotations

import logging
import random
import statistics
import time
from pathlib import Path

import pytest

from tests.gantrymq.client.seen import until
from tests.harness import LocalCluster
from tests.soak.faults import FAULTS, Faults
from tests.soak.relay import Relay
from tests.soak.soak import GROUPS, STEADY, Soak, Use, soaking, use

RARE = "broker restarted"  # which is gentler than that it is killed
FEW = 8  # tasks or sockets that come and go
GROWTH = 1.1
GROWTH_KIB = 8 * 1024
ROUNDS_FOR_MEMORY = 6


async def test_nothing_is_lost_and_nothing_grows_whatever_fails(
    tmp_path: Path, pytestconfig: pytest.Config, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = float(pytestconfig.getoption("--soak-seconds"))
    dice = random.Random(1)
    if seconds:  # pytest keeps every record, with the error and its frames
        caplog.set_level(logging.CRITICAL, logger="gantrymq")
    with LocalCluster(tmp_path / "cluster") as cluster:
        async with Relay(cluster.broker_address) as before_broker:
            rewrite = (cluster.broker_address.encode(), before_broker.address.encode())
            async with Relay(cluster.namesrv_address, rewrite=rewrite) as before_namesrv:
                pause_s = 0.03 if seconds else 0.005
                async with soaking(tmp_path, cluster, before_namesrv.address, pause_s=pause_s) as soak:
                    faults = Faults(soak, before_namesrv, before_broker)
                    await soak.joined()
                    await soak.sent(200)
                    await soak.caught_up()
                    held = [use()]
                    names = [name for name in FAULTS if seconds or name != RARE]
                    began = time.monotonic()
                    while len(held) == 1 or time.monotonic() - began < seconds:
                        for name in names:
                            await faults.inflict(name)
                        held.append(await _as_calm_as(held[0]))
                        print(held[-1])
                        dice.shuffle(names)
                _judge(soak, held)


async def _as_calm_as(before: Use) -> Use:
    """What is held when as many tasks and sockets are left as there were; TimeoutError while there are more."""
    await until(lambda: (now := use()).tasks <= before.tasks + FEW and now.sockets <= before.sockets + FEW)
    return use()


def _judge(soak: Soak, held: list[Use]) -> None:
    print(f"\n{soak.acknowledged.total()} acknowledged, {soak.failed_sends} tries given up, {dict(soak.faults)}")
    for group in (*GROUPS, STEADY):
        verdict = soak.verdict(group)
        print(
            f"{group}: {verdict.messages} messages, {verdict.stored_twice} stored twice, "
            f"{verdict.handed_over} again when their queue was handed over"
        )
        assert (verdict.lost, verdict.out_of_order, verdict.unexplained) == ([], [], []), group
    print(f"held at first, and after each round: {held}")
    if len(held) > ROUNDS_FOR_MEMORY:
        quarter = len(held) // 4
        before, after = (
            statistics.median(each.resident_kib for each in some) for some in (held[1 : quarter + 1], held[-quarter:])
        )
        assert after <= before * GROWTH + GROWTH_KIB
