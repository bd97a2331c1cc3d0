"""What speaks against the promotion of a slave of an Apache master: all that was acknowledged has to be in its log."""

from __future__ import annotations

import pytest

from gantrymq.client.admin.members import Known, Member, NameServerView
from gantrymq.client.admin.promotion import Promotion, judge

SLAVE = "10.0.0.2:10911"
OTHER = "10.0.0.3:10911"
MASTER = "10.0.0.1:10911"
SERVER = NameServerView("ns", True, {1: SLAVE})
ALIVE = Member(MASTER, 0, {"commitLogMaxOffset": "900"})  # Apache's doesn't say its role
APACHES_SLAVE = {"commitLogMaxOffset": "900"}


def slave(end: int = 900, **info: str) -> Member:
    """As it is when its master was fenced, and stopped then."""
    figures = {"brokerRole": "SLAVE", "commitLogMaxOffset": str(end), "commitLogMinOffset": "0", "epochHighest": "0"}
    figures |= {"epoch": "0", "slaveMasterEnd": "900", "slaveHeardSecondsAgo": "60.1", "slaveMasterBroker": MASTER}
    return Member(SLAVE, 1, figures | {"slaveApacheBegin": "0", "slaveApacheEnd": "900"} | info)


def judged(*members: Member, server: NameServerView = SERVER, loss: int = 0) -> Promotion:
    gone = [] if ALIVE in members else [Member(MASTER, 0)]
    return judge("broker-a", Known([*members, *gone], [server]), SLAVE, accepted_loss=loss, from_apache=True)


@pytest.mark.parametrize(
    "promotion",
    [
        judged(slave()),
        judged(slave(), Member(OTHER, 2, APACHES_SLAVE)),  # another slave that has as much
        judged(slave(800), loss=100),
        judged(slave(commitLogMinOffset="100"), loss=100),
    ],
)
def test_a_slave_that_has_the_whole_log_of_a_fenced_master_is_promoted(promotion: Promotion) -> None:
    assert promotion.obstacles == [] and promotion.epoch == 1


@pytest.mark.parametrize(
    ("members", "server", "words"),
    [
        ([slave(), ALIVE], SERVER, f"{MASTER} answers, and is the master: "),
        ([slave(), Member(MASTER, 0, refuses=True)], SERVER, f"{MASTER} is there, and refuses to say what it is"),
        ([slave(800)], SERVER, f"{SLAVE} lacks 100 bytes of its Apache master's log, which ended at 900"),
        ([slave(800, slaveApacheEnd="-1")], SERVER, f"{SLAVE} lacks 100 bytes of its Apache master's log"),
        ([slave(commitLogMinOffset="100")], SERVER, f"{SLAVE} lacks 100 bytes of older messages"),
        ([slave(), Member(OTHER, 2, APACHES_SLAVE | {"commitLogMaxOffset": "901"})], SERVER, f"{OTHER} has 1 bytes"),
        ([slave(epoch="1", epochHighest="1")], SERVER, f"{SLAVE} has heard of epoch 1"),
        ([slave()], NameServerView("ns", True, {}, {"epochNumber": "3"}), "epoch 3 has begun at a master of GantryMQ"),
        ([slave(), Member(OTHER, 2, APACHES_SLAVE | {"epochHighest": "2"})], SERVER, "epoch 2 has begun"),
    ],
)
def test_what_is_known_to_be_missing_or_there_is_not_accepted_with_the_unknown(
    members: list[Member], server: NameServerView, words: str
) -> None:
    left = judged(*members, server=server).left_with(accept_unknown=True)
    assert any(each.startswith(words) for each in left), left


@pytest.mark.parametrize(
    ("members", "server", "words"),
    [
        (
            [slave(slaveApacheEnd="-1")],
            SERVER,
            f"{SLAVE} has not seen where the log of its Apache master ends for good",
        ),
        ([slave(950)], SERVER, f"{SLAVE} has 50 bytes more than its Apache master had when it was fenced"),
        ([slave(), Member(OTHER, 2)], SERVER, f"{OTHER} does not answer"),
        ([slave()], NameServerView("ns"), "the name server ns does not answer"),
    ],
)
def test_who_can_not_say_counts_as_against(members: list[Member], server: NameServerView, words: str) -> None:
    promotion = judged(*members, server=server)
    assert any(each.startswith(words) for each in promotion.unknown), promotion.obstacles
    assert promotion.left_with(accept_unknown=False) == promotion.obstacles
    assert promotion.left_with(accept_unknown=True) == []


def test_etcd_proves_nothing_of_an_apache_master() -> None:
    promotion = judged(slave(epochRegister="http://etcd"))
    assert promotion.has_register and not promotion.is_for_register
