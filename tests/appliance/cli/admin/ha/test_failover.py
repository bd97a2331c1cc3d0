"""Whom `gantry admin ha switchover` takes: what etcd has of a slave is some seconds old, so the slave is asked, too."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.cli.admin.ha import failover
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.failover import FailoverMember, FailoverStatus
from gantrymq.errors import ConfigError, ConnectError

ONE, TWO = "10.0.0.1:10911", "10.0.0.2:10911"
STATUS = FailoverStatus(
    "broker-a",
    is_automatic=True,
    master=ONE,
    next_master=TWO,
    members=(
        FailoverMember(1, ONE, in_sync=True, is_master=True),
        FailoverMember(2, TWO, in_sync=True, is_master=False, has_told=True),
    ),
)


def admin(info: dict[str, str]) -> AdminClient:
    """Of a cluster whose record is in order. info: what the slave answers; empty: nothing."""

    async def status(_broker: str) -> FailoverStatus:
        return STATUS

    async def answer(address: str) -> dict[str, str]:
        if not info:
            raise ConnectError(address, "connection refused")
        return {"brokerRole": "SLAVE", "epoch": "3", **info}

    found: Any = SimpleNamespace(
        succession=SimpleNamespace(failover=status), brokers=SimpleNamespace(runtime_info=answer)
    )
    return cast(AdminClient, found)


def arguments(to: str | None) -> argparse.Namespace:
    return argparse.Namespace(broker="broker-a", to=to, unclean=False, cancel=False, accept_loss=None,
                              accept_unknown=False, accept_epoch=0)  # fmt: skip


@pytest.mark.parametrize("to", [None, TWO])
@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({}, "it does not answer, so it may be opening, or have ended"),
        ({"slaveState": "connecting"}, "it is a slave in epoch 3, connecting"),
        ({"slaveState": "disk full", "slaveStateWhy": "no room for 1 MiB"}, "disk full: no room for 1 MiB"),
        ({"slaveState": "comparing logs"}, "comparing logs"),
        ({"brokerRole": "SYNC_MASTER", "epochHighest": "4"}, "it is the master of epoch 4"),
    ],
)
async def test_a_slave_that_says_itself_that_it_can_not_serve_is_refused(
    info: dict[str, str], why: str, to: str | None
) -> None:
    with pytest.raises(ConfigError, match=f"{TWO} can't become the master: ") as refused:
        await failover.plan_switch(admin(info), arguments(to))
    assert why in str(refused.value)


async def test_one_that_copies_is_taken() -> None:
    shown = await failover.plan_switch(admin({"slaveState": "copying"}), arguments(None))
    assert shown.document["to"] == TWO
