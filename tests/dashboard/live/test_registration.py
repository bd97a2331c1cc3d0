"""What `gantry up` waits for before it says READY."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dashboard.cluster.errors import ClusterUnreachable
from dashboard.cluster.values import BrokerRef
from dashboard.live.registration import wait_registered

FIRST, SECOND = "127.0.0.1:10911", "127.0.0.1:10921"


@dataclass
class Cluster:
    brokers: tuple[BrokerRef, ...] = ()
    slaves: tuple[BrokerRef, ...] = ()


@dataclass
class NameServer:
    """In place of a gateway: what each look finds; None for silence. The last one stays."""

    looks: list[Cluster | None]
    count: int = 0
    ages: set[float] = field(default_factory=set)

    @property
    def brokers(self) -> NameServer:
        return self

    async def list(self, *, timeout_s: float, max_age_s: float) -> Cluster:
        self.ages.add(max_age_s)
        found = self.looks[min(self.count, len(self.looks) - 1)]
        self.count += 1
        if found is None:
            raise ClusterUnreachable("silent")
        return found


ONE = Cluster((BrokerRef("a", FIRST, "c"),))
BOTH = Cluster(ONE.brokers, (BrokerRef("a", SECOND, "c", 1),))


async def test_it_waits_until_masters_and_slaves_are_known_whatever_comes_before() -> None:
    gateway: Any = NameServer([None, Cluster(), ONE, BOTH])
    assert await wait_registered(gateway, [FIRST, SECOND], 240) == []
    assert gateway.count == 4
    assert gateway.ages == {0}, "what is remembered may be from before"


@pytest.mark.parametrize(("look", "missing"), [(None, [FIRST, SECOND]), (ONE, [SECOND])])
async def test_what_is_not_known_in_time_is_told(look: Cluster | None, missing: list[str]) -> None:
    gateway: Any = NameServer([look])
    assert await wait_registered(gateway, [SECOND, FIRST], 0.3) == missing
