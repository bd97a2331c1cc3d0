"""Topics and groups change while the way to the slave is cut: at the end, and after a promotion, it has the master's.

pytest tests/faults/replication/test_tables_under_cuts.py --rounds 400
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from appliance.broker.replication import ha_client
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from tests.appliance.broker.replication.brokers import QUICK, group, is_master, promote
from tests.appliance.broker.replication.brokers import send as send_to
from tests.appliance.broker.replication.pair import CuttingProxy, follower_of
from tests.waiting import until

ROUNDS = 60  # usual: changes, each with a cut or two under way
NAMES = 12  # of topics and of groups: each is created, changed, deleted and created again
CUT_BYTES_MAX = 6000  # greeting, frames of the log, a state with all tables
CUTS_EACH = 20  # more than can be used up
WAITED_FOR = 0.3  # of the changes: the next ones come after a cut


def change(master: BrokerController, dice: random.Random) -> None:
    number = dice.randrange(NAMES)
    topic, name = f"Topic-{number}", f"Group-{number}"
    match dice.randrange(4):
        case 0:
            master.topics.delete(topic)
        case 1:
            master.groups.delete(name)
        case 2:
            master.groups.update(SubscriptionGroupConfig(name, retry_max_times=dice.randrange(1, 16)))
        case _:
            queues = dice.randrange(1, 9)
            master.topics.update(TopicConfig(topic, queues, queues, perm=dice.choice((2, 4, 6))))


@pytest.mark.slow
async def test_a_slave_that_is_cut_off_again_and_again_has_the_tables_of_its_master(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(ha_client, "RETRY_S_MIN", 0.001)
    monkeypatch.setattr(ha_client, "RETRY_S_MAX", 0.002)
    rounds = request.config.getoption("--rounds", default=None) or ROUNDS
    dice = random.Random(seed if rounds > ROUNDS else ROUNDS)
    async with group(tmp_path) as brokers, brokers.broker("one") as one:
        master = one.controller
        async with CuttingProxy(master.slaves.port) as proxy:
            proxy.cut_after = [dice.randrange(1, CUT_BYTES_MAX) for _ in range(rounds * CUTS_EACH)]
            further = QUICK | {"ha_master_address": proxy.address}
            async with brokers.broker("two", broker_id=1, **further) as two:
                slave = two.controller
                await until(lambda: follower_of(slave).synchronize.complete_at > 0)
                for _ in range(rounds):
                    cuts = proxy.cuts
                    for _ in range(dice.randrange(1, 6)):
                        change(master, dice)
                    await send_to(one, 2)
                    if dice.random() < WAITED_FOR:
                        await until(lambda cuts=cuts: proxy.cuts > cuts)  # type: ignore[misc]
                proxy.cut_after = []
                await until(lambda: slave.topics.configs == master.topics.configs)
                await until(lambda: slave.groups.configs == master.groups.configs)
                await until(lambda: slave.store.max_physical_offset == master.store.max_physical_offset)
                topics, groups = dict(master.topics.configs), dict(master.groups.configs)
                answer = await promote(two, force="true")
                assert answer.code == 0, answer.remark
                await until(lambda: is_master(two))
                now = two.controller
                assert {name: now.topics.configs.get(name) for name in topics} == topics
                assert {name: now.groups.configs.get(name) for name in groups} == groups
    assert proxy.cuts > 0
