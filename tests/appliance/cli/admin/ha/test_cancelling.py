"""`gantry admin ha switchover --cancel`: what it takes back, and what is too late."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import pytest

from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.ha import cancelling
from appliance.failover.view import Switch, TermState
from appliance.register.etcd import EtcdClient
from appliance.register.register import Refused, Register
from appliance.register.term import IN_SYNC, Term, View
from gantrymq.errors import ConfigError

ONE, TWO = "10.0.0.1:10911", "10.0.0.2:10911"
TERM = Term(3, "three", ONE, (ONE, TWO), IN_SYNC)
ASKED = View(TERM, 7, switch=Switch("x", 2, True, 0, 3, 7), switch_revision=9)


class Changing(Register):
    """A record in memory, whose term changes before so many of the tries."""

    def __init__(self, changes: int) -> None:
        super().__init__(EtcdClient([]), "c", "b")
        self.changes, self.dropped = changes, list[str]()

    async def view(self) -> View:
        return ASKED

    async def drop_switch(self, view: View, reason: str, asked: str = "", *, has_not_begun: bool = False) -> None:
        assert has_not_begun
        self.changes -= 1
        if self.changes >= 0:
            raise Refused("the record in etcd has changed in the meantime")
        self.dropped.append(reason)


@pytest.mark.parametrize("changes", [0, cancelling.TRIES - 1])
async def test_it_is_taken_back_also_while_the_set_changes(changes: int) -> None:
    register = Changing(changes)
    shown = await cancelling.cancel("broker-a", register, "ops")
    assert register.dropped == ["ops has cancelled it"]
    assert shown.lines == [f"the switchover to member 2 is cancelled: {ONE} goes on as the master"]


async def test_it_says_so_when_the_record_never_stands_still() -> None:
    with pytest.raises(Refused):
        await cancelling.cancel("broker-a", Changing(cancelling.TRIES), "ops")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"state": TermState.RELEASED, "end": 0}, f"{ONE} has given up its role"),
        ({"epoch": 4, "owner": TWO}, "has epoch 4"),
    ],
)
def test_what_has_begun_is_not_taken_back(changed: dict[str, Any], why: str) -> None:
    view = dataclasses.replace(ASKED, term=dataclasses.replace(TERM, **changed))
    with pytest.raises(ConfigError, match=f"has begun, and can't be cancelled: .*{why}"):
        cancelling.checked("broker-a", view)


def test_the_death_of_the_master_is_no_part_of_it() -> None:
    """Its supervisor has released the epoch; while failover is paused, the broker has it again once it is back."""
    died = dataclasses.replace(TERM, state=TermState.RELEASED)
    shown = cancelling.checked("broker-a", dataclasses.replace(ASKED, term=died))
    assert shown.lines == [f"the switchover to member 2 is cancelled: {ONE} has died"]


def test_where_none_is_asked_for_it_says_who_is_the_master() -> None:
    with pytest.raises(NotThere, match=f"no switchover of broker-a is asked for: {ONE} is the master in epoch 3"):
        cancelling.checked("broker-a", dataclasses.replace(ASKED, switch=None))


@pytest.mark.parametrize("further", [{"to": TWO}, {"unclean": True}])
def test_it_names_no_target(further: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="leave --to and --unclean out"):
        cancelling.is_asked(argparse.Namespace(**{"cancel": True, "to": None, "unclean": False, **further}))
