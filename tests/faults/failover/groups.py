"""Three brokers in sync with automatic failover, as processes, and the etcd that they know."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.faults.failover.recorded import gantry, holders
from tests.faults.kit.replicas import SYNC, replicated
from tests.faults.replication.recorder import Recorder, assert_as_told
from tests.harness import LocalCluster
from tests.servers.etcd import EtcdMember, urls_of
from tests.waiting import wait_until

LEASE_S = 3
AUTOMATIC = SYNC | {"automaticFailover": "true", "readConfirmedOnly": "true"}


class Scene:
    """Three brokers in sync, and etcd's members."""

    def __init__(self, brokers: list[LocalCluster], members: list[EtcdMember]) -> None:
        self.brokers, self.members = brokers, members

    def check(self, *recorders: Recorder, owner: LocalCluster) -> None:
        assert_as_told(recorders, self.brokers, owner)


@contextlib.contextmanager
def running(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    members: list[EtcdMember],
    *,
    lease_s: int = LEASE_S,
    may_take_over: bool = True,
    more: Mapping[str, str] | None = None,
) -> Iterator[Scene]:
    """more: settings of all brokers."""
    known = AUTOMATIC | (more or {}) | {"etcdEndpoints": urls_of(members), "failoverLeaseSeconds": str(lease_s)}
    of_slaves = known | {"automaticFailover": str(may_take_over).lower()}
    with replicated(folder, known, of_slaves) as brokers:
        wait_until(lambda: gantry(capsys, brokers[0], "init", "--accept-unknown").code == 0)
        wait_until(lambda: len(holders(members[0], brokers[0])) == 3)
        yield Scene(brokers, members)
