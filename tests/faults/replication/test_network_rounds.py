"""Networks that are cut in one direction, or slow, amid switch-overs and promotions: nothing acknowledged is lost.

pytest tests/faults/replication/test_network_rounds.py -s --rounds 30 --timeout 0
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gantrymq import SyncAdminClient
from gantrymq.errors import GantryError
from tests.faults.kit.network import CUT, Network
from tests.faults.kit.nodes import CLIENTS, ETCD, NAMES, Node, nodes
from tests.faults.kit.replicas import SYNC, TOPIC, promote_checked, runtime_info, settled
from tests.faults.replication.history import check
from tests.faults.replication.logs import read_log
from tests.faults.replication.reader import Reader
from tests.faults.replication.recorder import acknowledged, sending
from tests.waiting import wait_until

ROUNDS = 1
CUT_S_MAX = 4.0  # longer than a slave without a word stays in sync
DELAYS_S = (0.05, 0.5)
CONFIRMED = {"readConfirmedOnly": "true"}


@pytest.mark.slow
@pytest.mark.parametrize("with_etcd", [False, True], ids=["alone", "etcd"])
def test_rounds_of_cut_networks_lose_nothing(
    tmp_path: Path, seed: int, with_etcd: bool, request: pytest.FixtureRequest
) -> None:
    dice = random.Random(seed)
    with nodes(tmp_path, SYNC | CONFIRMED, with_etcd=with_etcd) as three:
        with sending(three, TOPIC) as recorders, Reader(TOPIC, three[0].namesrv_address) as reader:
            for number in range(request.config.getoption("--rounds", default=None) or ROUNDS):
                master = settled(three)
                recorders[three.index(master)].more(30)
                told = one_round(three, master, dice, with_etcd=with_etcd)
                print(f"{number}: {told}; {acknowledged(recorders)} acknowledged", flush=True)
            master = settled(three)
            recorders[three.index(master)].more(30)
        wait_until(lambda: len({runtime_info(each).get("commitLogMaxOffset") for each in three}) == 1)
        sends = [send for recorder in recorders for send in recorder.sends]
        logs = [read_log(each.broker_address, each.store) for each in three]
    print(f"{acknowledged(recorders)} acknowledged of {len(sends)}, {len(reader.delivered)} delivered")
    assert check(sends, logs, master.broker_address, reader.delivered) == []


def one_round(three: list[Node], master: Node, dice: random.Random, *, with_etcd: bool) -> str:
    """Disturb the network, and maybe a member, while the master changes; all is well again at the end."""
    net, slaves = master.net, [each for each in three if each is not master]
    target = dice.choice(slaves)
    told = [disturb(net, master, target, dice, with_etcd=with_etcd)]
    victim, blow = dice.choice(three), dice.choice([None, None, signal.SIGKILL, signal.SIGSTOP])
    is_planned = dice.random() < 0.5
    with ThreadPoolExecutor(1) as thread:
        if is_planned:
            asked = thread.submit(switch_over, master, target)
        else:
            time.sleep(dice.random() * CUT_S_MAX)  # how long the master serves in that network
            master.kill_broker()
            asked = thread.submit(promotion, slaves)
        time.sleep(dice.random())  # the dice say when the member is struck
        if blow is signal.SIGKILL:
            victim.kill_broker()
        elif blow is signal.SIGSTOP and victim.is_up:
            os.kill(victim.broker.pid, signal.SIGSTOP)
        time.sleep(dice.random() * CUT_S_MAX)  # and for how long all of it lasts
        net.heal()
        for each in three:
            if not each.is_up:
                each.start_broker()
            else:
                os.kill(each.broker.pid, signal.SIGCONT)
        told += [f"{victim.node} {blow.name}" if blow else "no blow", asked.result()]
    return ", ".join(told)


def disturb(net: Network, master: Node, slave: Node, dice: random.Random, *, with_etcd: bool) -> str:
    """One or two links: cut in one direction, in both, or slow."""
    links = [(master.node, slave.node), (master.node, NAMES), (slave.node, NAMES), (master.node, CLIENTS)]
    if with_etcd:
        links += [(master.node, ETCD), (slave.node, ETCD)]
    told = []
    for link in dice.sample(links, dice.choice((1, 2))):
        how, seconds = dice.choice(("to", "from", "both")), dice.choice((CUT, CUT, *DELAYS_S))
        for source, target in (link, link[::-1]):
            if how == "both" or (how == "to") == (source == link[0]):
                net.late(source, target, seconds)
        told.append(f"{link[0]} {how} {link[1] or 'clients'} {'cut' if seconds == CUT else f'{seconds:g} s late'}")
    return ", ".join(told)


def switch_over(master: Node, slave: Node) -> str:
    with SyncAdminClient(master.namesrv_address, timeout_s=2) as admin:
        try:
            admin.succession.switch_over(*admin.succession.switch(master.broker_name, slave.broker_address))
        except GantryError as exc:
            return f"no switch-over ({str(exc)[:100]})"
        return "switch-over"


def promotion(slaves: Sequence[Node]) -> str:
    """One try each, without a flag: what is refused stays as it is, and the master comes back."""
    why = ""
    for slave in slaves:
        try:
            promote_checked(slave)
        except GantryError as exc:
            why = str(exc)[:100]
        else:
            return "promotion"
    return f"no promotion ({why})"
