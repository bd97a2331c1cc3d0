"""What `gantry admin ha switchover --unclean` says before anything is asked for, besides what members answer."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import pytest

from appliance.cli.admin.ha import unclean
from appliance.cli.admin.ha.looking import Seen
from appliance.failover.view import Figures
from appliance.register.etcd import EtcdClient
from appliance.register.register import Register
from appliance.register.term import IN_SYNC, Term, View
from gantrymq.client.admin.failover import FailoverMember, FailoverStatus
from gantrymq.client.admin.members import Member
from gantrymq.errors import ConfigError

ONE, TWO, THREE = "10.0.0.1:10911", "10.0.0.2:10911", "10.0.0.3:10911"
TERM = Term(5, "five", ONE, (ONE, TWO), IN_SYNC)
THERE = {"epoch": "5", "epochId": "five", "commitLogMaxOffset": "4000", "slaveState": "connecting"}


OLD = {"epoch": "4", "epochId": "four"}
NOT_TOLD = f"etcd has epoch 5 (five) on record, and the log of {THREE} ends in epoch"


def against(info: dict[str, str], *, loss: int = 1001, epoch: int = 0, told: str = TWO) -> list[str]:
    """Of a slave with these figures. told: who has told etcd of 1,001 bytes more, and does not answer, if it is TWO."""
    slave = Member(THREE, 2, THERE | info)
    figures = {2: (9, Figures(told, "b", 5, 5001, 5001, is_healthy=True))}
    seen = Seen(Register(EtcdClient([]), "c", "b"), View(TERM, 7, figures=figures), [Member(TWO, 1), slave])
    accepted = argparse.Namespace(accept_loss=loss, accept_epoch=epoch)
    return list(unclean.against(seen, slave, accepted))


@pytest.mark.parametrize(
    ("info", "loss", "epoch", "text"),
    [
        (OLD, 1001, 0, f"{NOT_TOLD} 4 (four): its length does not tell what it lacks (--accept-epoch 4)"),
        (OLD, 1001, 3, f"{NOT_TOLD} 4"),
        ({"epochId": "another"}, 1001, 0, f"{NOT_TOLD} 5 (another)"),
        ({"slaveState": "diverged"}, 1001, 0, f"the log of {THREE} is not known to be its master's: diverged"),
        ({}, 1000, 0, f"{TWO} has reported 1,001 bytes more of the log to etcd than {THREE} has"),
    ],
)
def test_it_names_what_speaks_against_it(info: dict[str, str], loss: int, epoch: int, text: str) -> None:
    (found,) = against(info, loss=loss, epoch=epoch)
    assert text in found


def test_nothing_is_left_against_it_when_loss_and_epoch_are_accepted() -> None:
    assert against(OLD, epoch=4) == []


def test_what_a_member_that_answers_has_told_etcd_is_not_said_twice() -> None:
    assert against({}, loss=0, told=THREE) == []


def test_the_master_on_record_can_be_the_target_once_it_is_a_slave_that_refuses_its_role() -> None:
    """As its store is an older copy, say, and no other member is left."""
    serves = FailoverMember(1, ONE, in_sync=True, is_master=True, has_told=True)
    refuses = dataclasses.replace(serves, refusal="its store is an older copy")
    status = FailoverStatus("broker-a", ONE, members=(refuses,))
    assert unclean.target_at(ONE, status) == refuses
    with pytest.raises(ConfigError, match="is the master"):
        unclean.target_at(ONE, dataclasses.replace(status, members=(serves,)))


@pytest.mark.parametrize("more", [{"accept_unknown": True}, {"accept_loss": 0}, {"accept_epoch": 4}])
def test_what_is_accepted_needs_unclean(more: dict[str, Any]) -> None:
    none = {"unclean": False, "to": TWO, "accept_loss": None, "accept_unknown": False, "accept_epoch": 0}
    with pytest.raises(ConfigError, match="need"):
        unclean.is_asked(argparse.Namespace(**{**none, **more}))
