"""A master and its slave as the sampler sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dashboard.cluster.values import BrokerRef
from dashboard.live.sampler import read_facts
from dashboard.status.board import BrokerState, Snapshot
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences

MASTER = BrokerRef("broker-a", "127.0.0.1:10911", "C")
SLAVE = BrokerRef("broker-a", "127.0.0.1:10921", "C", 1)
CONNECTION = "127.0.0.1:40001"
STRANGER = "10.0.0.7:40002"  # a slave that does not tell its name
COPYING = {"slaveState": "copying", "slaveStateWhy": "none", "slaveMaster": "127.0.0.1:10912"}


def state(broker: BrokerRef, why: str | None = None, age_s: float = 0.0, **info: str) -> BrokerState:
    facts = read_facts(broker, {"bootTimestamp": "1"} | info, 100.0 - age_s, None)
    return BrokerState(
        broker.key, broker.address, replace(facts, in_rate=5.0, out_rate=3.0, in_now=5.0, out_now=3.0), why, None,
        broker.broker_id,
    )  # fmt: skip


def master(why: str | None = None, age_s: float = 0.0, behind_messages: int = 0) -> BrokerState:
    slave = SlaveDifference(CONNECTION, 2048, 1.0, True, 512, behind_messages)
    return state(MASTER, why, age_s, slaveDifferences=SlaveDifferences([slave]).to_json().decode())


def slave(why: str | None = None, age_s: float = 0.0, changes: Mapping[str, str] | None = None) -> BrokerState:
    return state(SLAVE, why, age_s, **COPYING | {"slaveConnection": CONNECTION} | dict(changes or {}))


def seen(*brokers: BrokerState) -> Snapshot:
    return Snapshot(100.0, "ns", None, brokers, (), None)


def telling(at: float, *differences: SlaveDifference, why: str | None = None) -> Snapshot:
    """A master that tells how far its slaves are."""
    text = SlaveDifferences(list(differences)).to_json().decode()
    return replace(seen(state(MASTER, why, slaveDifferences=text), slave()), at=at)
