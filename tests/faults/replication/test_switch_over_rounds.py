"""Switch-overs under traffic while master or slave is killed or stopped at random: nothing acknowledged is lost.

pytest tests/faults/replication/test_switch_over_rounds.py -s --rounds 20
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gantrymq import SyncAdminClient
from gantrymq.errors import GantryError
from tests.faults.kit.replicas import SYNC, TOPIC, replicated, runtime_info
from tests.faults.replication.history import Answer, check
from tests.faults.replication.logs import read_log
from tests.faults.replication.recorder import Recorder
from tests.harness import LocalCluster
from tests.waiting import wait_until

ROUNDS = 2
STRUCK_WITHIN_S = 1.0  # of the command: a switchover takes half a second
STOPPED_S_MAX = 3.0


@pytest.mark.slow
def test_rounds_of_switch_overs_with_a_member_struck_lose_nothing(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest
) -> None:
    chance, outcomes = random.Random(seed), Counter[str]()
    with replicated(tmp_path, SYNC, slaves=1) as pair:
        serving = pair[:1]
        with Recorder("p", TOPIC, lambda: serving[0].broker_address) as recorder:
            for _ in range(request.config.getoption("--rounds", default=None) or ROUNDS):
                recorder.more(50)
                outcomes[struck_switch_over(pair, chance)] += 1
                wait_until(lambda: settled(pair, serving))
            recorder.more(50)
        wait_until(lambda: len({runtime_info(each).get("commitLogMaxOffset") for each in pair}) == 1)
        logs = [read_log(each.broker_address, each.store) for each in pair]
    print(f"\n{dict(outcomes)}; {recorder.count(Answer.ACKNOWLEDGED)} acknowledged, {len(recorder.sends)} sent")
    assert check(recorder.sends, logs, serving[0].broker_address) == []
    assert logs[0].data == logs[1].data


def struck_switch_over(pair: list[LocalCluster], chance: random.Random) -> str:
    """Begin a switchover and strike one of the two meanwhile, or none; all are up again at the end."""
    victim, blow = chance.choice(pair), chance.choice((None, signal.SIGKILL, signal.SIGSTOP))
    with ThreadPoolExecutor(1) as thread:  # brokers are started by this one: they end with who started them
        asked = thread.submit(switch_over, pair[0])
        time.sleep(chance.random() * STRUCK_WITHIN_S)  # the dice say when it is struck
        if blow is signal.SIGKILL:
            victim.kill_broker()
            time.sleep(chance.random())  # and how long it is away
            victim.start_broker()
        elif blow is signal.SIGSTOP:
            os.kill(victim.broker.pid, signal.SIGSTOP)
            time.sleep(chance.random() * STOPPED_S_MAX)  # or stopped
            os.kill(victim.broker.pid, signal.SIGCONT)
        return f"{blow.name if blow else 'no blow'}: {asked.result()}"


def switch_over(peer: LocalCluster) -> str:
    with SyncAdminClient(peer.namesrv_address, timeout_s=3) as admin:
        try:
            admin.succession.switch_over(*admin.succession.switch(peer.broker_name))
        except GantryError as exc:
            print(exc)
            return "not done"
        return "done"


def settled(pair: list[LocalCluster], serving: list[LocalCluster]) -> bool:
    """Whether one of them is the master and takes messages, and the other is in sync with it."""
    infos = [runtime_info(each) for each in pair]
    for number, info in enumerate(infos):
        other = infos[1 - number]
        if info.get("brokerRole", "SLAVE") != "SLAVE" and other.get("slaveState") == "copying":
            serving[0] = pair[number]
            return info["messagesHeld"] == "false" and info["slavesInSyncSet"] == pair[1 - number].broker_address
    return False
