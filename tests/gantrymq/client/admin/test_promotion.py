"""What speaks against a promotion: what was confirmed is not there, or nobody can say that it is."""

from __future__ import annotations

import pytest

from gantrymq.client.admin.members import Known, Member, NameServerView
from gantrymq.client.admin.promotion import Promotion, judge

SLAVE = "10.0.0.2:10911"
OTHER = "10.0.0.3:10911"
MASTER = "10.0.0.1:10911"
TOLD = {"inSyncSetTold": f"{OTHER},{SLAVE}", "inSyncEpochTold": "2", "confirmedOffsetTold": "900"}
GONE = NameServerView("ns", True, {1: SLAVE}, {"masterGoneMs": "60000", "epochNumber": "2"})


def slave(end: int, address: str = SLAVE, **info: str) -> Member:
    """As it is when its master ended a minute ago, half a second after it told its last state."""
    figures = {"brokerRole": "SLAVE", "commitLogMaxOffset": str(end), "epochHighest": "2", "epoch": "2"}
    figures |= {"slaveMasterEnd": str(end), "slaveHeardSecondsAgo": "60.1", "slaveToldSecondsAgo": "60.5"}
    figures |= {"slaveMasterBroker": MASTER, "inSyncLeaveSecondsTold": "1"}
    return Member(address, 1, figures | {"inSyncSetTold": SLAVE, "inSyncEpochTold": "2"} | info)


def judged(*members: Member, server: NameServerView = GONE, loss: int = 0) -> Promotion:
    return judge("broker-a", Known([*members, Member(MASTER, 0)], [server]), SLAVE, accepted_loss=loss)


def test_nothing_speaks_against_a_slave_that_has_all_that_was_acknowledged() -> None:
    assert judged(slave(900)).obstacles == []
    promotion = judged(slave(900, **TOLD), slave(900, OTHER, **TOLD))
    assert promotion.obstacles == [] and promotion.epoch == 3
    restarted = NameServerView("ns", True, {1: SLAVE})  # it saw no master end
    assert judged(slave(900, slaveToldSecondsAgo="0.9"), server=restarted).obstacles == []


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([slave(800, **TOLD), slave(800, OTHER, **TOLD)], f"{SLAVE} lacks 100 bytes that were confirmed: {OTHER}"),
        ([slave(800, **TOLD), slave(900, OTHER, **TOLD)], f"{OTHER} has 100 bytes more of the log"),
        ([slave(800, slaveMasterEnd="850")], f"{SLAVE} lacks 50 bytes that the master had 60.1 s ago"),
        ([slave(800, epochHighest="0", epoch="0")], f"{SLAVE} knows no epochs"),
        ([slave(900), Member(OTHER, 0, {"brokerRole": "SYNC_MASTER"})], f"{OTHER} answers, and is the master"),
        ([slave(900), Member(MASTER, 0, refuses=True)], f"{MASTER} is there, and refuses to say what it is"),
    ],
)
def test_what_is_known_to_be_lost_or_there_is_not_accepted_with_the_unknown(members: list[Member], words: str) -> None:
    left = judged(*members).left_with(accept_unknown=True)
    assert any(each.startswith(words) for each in left), left


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([slave(900, **TOLD), Member(OTHER, 2)], f"{OTHER} was in sync with the master and does not answer"),
        ([slave(900), Member(OTHER, 2)], f"{OTHER} does not answer"),
        ([slave(900, inSyncSetTold="none")], "no slave was in sync at the master's last report"),
        ([slave(900), slave(900, OTHER, **TOLD | {"inSyncSetTold": OTHER})], f"{SLAVE} is not in sync"),
        (
            [slave(900, **TOLD), slave(900, OTHER, **TOLD | {"inSyncSetTold": OTHER, "inSyncVersionTold": "2"})],
            f"{SLAVE} is not in sync",
        ),
        ([slave(900, slaveToldSecondsAgo="61.1")], f"{SLAVE} heard of its master 61.1 s ago, and the master"),
        ([slave(900, slaveToldSecondsAgo="never")], f"{SLAVE} has not heard of its master since it started"),
    ],
)
def test_who_does_not_answer_counts_as_against(members: list[Member], words: str) -> None:
    promotion = judged(*members)
    assert any(each.startswith(words) for each in promotion.unknown), promotion.obstacles
    assert promotion.left_with(accept_unknown=False) == promotion.obstacles
    assert promotion.left_with(accept_unknown=True) == []


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (NameServerView("ns"), "the name server ns does not answer"),
        (NameServerView("ns", True, {1: SLAVE}), f"{SLAVE} heard of its master 60.5 s ago, and no name server saw"),
        (
            NameServerView("ns", True, {0: MASTER, 1: SLAVE}, dict(GONE.fields)),
            f"{SLAVE} heard of its master 60.5 s ago",
        ),
        (
            NameServerView("ns", True, {}, dict(GONE.fields) | {"epochNumber": "7", "epochMaster": OTHER}),
            f"epoch 7 has begun at {OTHER}, and the log of {SLAVE} is of epoch 2",
        ),
    ],
)
def test_name_servers_are_asked_too(server: NameServerView, words: str) -> None:
    promotion = judged(slave(900), server=server)
    assert any(each.startswith(words) for each in promotion.unknown), promotion.obstacles
    assert promotion.epoch == max(server.epoch, 2) + 1
