"""What etcd has on record of a group of brokers, and the commands for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from appliance.bench.gantry_peer import CHECKOUT
from appliance.bench.peer import CLUSTER_NAME
from appliance.failover.view import Holder
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import Register
from appliance.register.term import Term, View
from tests.appliance.cli.running_gantry import Ran, run_gantry
from tests.harness import LocalCluster
from tests.servers.etcd import EtcdMember
from tests.waiting import WITHIN_S


def gantry(capsys: pytest.CaptureFixture[str], peer: LocalCluster, verb: str, *more: str) -> Ran:
    return run_gantry(capsys, "admin", "-n", peer.namesrv_address, "ha", verb, peer.broker_name, *more)


@contextlib.contextmanager
def begun(peer: LocalCluster, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`gantry admin WORDS` as a process, which is killed at the block's end unless it has ended."""
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "appliance", "admin", "-n", peer.namesrv_address, *words],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as command:
        try:
            yield command
        finally:
            command.kill()


def on_record(member: EtcdMember, peer: LocalCluster) -> list[str]:
    """The in-sync set in etcd."""
    term = term_of(member, peer)
    return sorted(term.in_sync) if term is not None else []


def holders(member: EtcdMember, peer: LocalCluster) -> Mapping[str, Holder]:
    """The members of it that have joined, with their boots."""
    term = term_of(member, peer)
    return term.holders if term is not None else {}


def term_of(member: EtcdMember, peer: LocalCluster) -> Term | None:
    return _view(member, peer).term


def told_ends(member: EtcdMember, peer: LocalCluster) -> Mapping[str, int]:
    """Where the members' logs end, as each has told etcd last."""
    return {said.address: said.log_end for _, said in _view(member, peer).figures.values()}


def _view(member: EtcdMember, peer: LocalCluster) -> View:
    client = EtcdClient(endpoints_of(member.url), deadline_s=WITHIN_S)  # members may be electing their leader
    return asyncio.run(Register(client, CLUSTER_NAME, peer.broker_name).view())
