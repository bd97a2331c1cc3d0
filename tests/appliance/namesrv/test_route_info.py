"""RouteInfoManager: registrations, expiry, routes, and what tools change."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from itertools import pairwise

import pytest

from appliance.errors import BrokerError
from appliance.namesrv.route_info import (
    FLAG_UNIT,
    FLAG_UNIT_SUB,
    TOPICS_A_SLICE,
    BrokerIdentity,
    MasterAddresses,
    RouteInfoManager,
)
from gantrymq.remoting.admin_bodies import DataVersion, TopicConfig
from gantrymq.remoting.registration import finished

V1, V2 = DataVersion(1, 1), DataVersion(2, 2)
MASTER = BrokerIdentity("C", "a", 0, "10.0.0.1:10911")
SLAVE = BrokerIdentity("C", "a", 1, "10.0.0.2:10911")
OTHER = BrokerIdentity("C2", "b", 0, "10.0.0.3:10911")


@pytest.fixture
def routes() -> RouteInfoManager:
    return RouteInfoManager()


def register(
    routes: RouteInfoManager,
    broker: BrokerIdentity = MASTER,
    *topics: TopicConfig,
    version: DataVersion = V1,
    connection: Hashable = "connection",
    now_s: float = 0.0,
    filter_servers: list[str] | None = None,
    epoch: int = 0,
) -> MasterAddresses:
    return finished(
        routes.registering(
            broker,
            ha_address=broker.address + "-ha",
            topics={topic.topic_name: topic for topic in topics or (TopicConfig("T", 4, 4),)},
            data_version=version,
            filter_servers=filter_servers or [],
            connection=connection,
            now_s=now_s,
            epoch=epoch,
        )
    )


def addresses(routes: RouteInfoManager, topic: str = "T") -> list[dict[int, str]]:
    route = routes.pickup_topic_route(topic)
    return [broker.broker_addrs for broker in route.broker_datas] if route else []


def perm(routes: RouteInfoManager, topic: str = "T") -> int:
    route = routes.pickup_topic_route(topic)
    assert route is not None
    return route.queue_datas[0].perm


PROMOTED = MASTER._replace(address=SLAVE.address)


@pytest.mark.parametrize("epoch", [1, 2])
def test_an_earlier_epoch_does_not_get_the_masters_place_back(routes: RouteInfoManager, epoch: int) -> None:
    register(routes, epoch=epoch)
    register(routes, PROMOTED, epoch=3)
    with pytest.raises(BrokerError, match=f"epoch {epoch} of a is over: 10.0.0.2:10911 is its master, in epoch 3"):
        register(routes, epoch=epoch)
    assert addresses(routes) == [{0: PROMOTED.address}]
    register(routes, MASTER._replace(broker_id=1), epoch=epoch)
    assert addresses(routes) == [{0: PROMOTED.address, 1: MASTER.address}], "it may be a slave"


def test_a_later_epoch_or_none_takes_the_masters_place(routes: RouteInfoManager) -> None:
    register(routes, epoch=2)
    for epoch, broker in ((3, PROMOTED), (3, MASTER), (0, PROMOTED), (2, MASTER)):
        register(routes, broker, epoch=epoch)
        assert addresses(routes) == [{0: broker.address}], "without an epoch the last one counts, as in RocketMQ"


def test_an_earlier_epoch_has_the_place_when_the_later_one_has_left(routes: RouteInfoManager) -> None:
    register(routes, PROMOTED, epoch=3, connection="its own")
    routes.connection_closed("its own")
    register(routes, epoch=1)
    assert addresses(routes) == [{0: MASTER.address}]


def test_a_master_that_was_replaced_is_not_taken_for_known(routes: RouteInfoManager) -> None:
    said = {"ha_address": "h", "topics": {}, "data_version": V1, "filter_servers": [], "connection": "c", "now_s": 0.0}
    finished(routes.registering(MASTER, digest=b"same", **said))  # type: ignore[arg-type]
    assert routes.is_known(MASTER, b"same", "c", 1.0)
    register(routes, PROMOTED)
    assert not routes.is_known(MASTER, b"same", "c", 2.0)


def test_a_topic_nobody_registered_has_no_route() -> None:
    assert RouteInfoManager().pickup_topic_route("T") is None


def test_a_master_brings_its_topics_and_a_slave_only_its_address(routes: RouteInfoManager) -> None:
    assert register(routes) == MasterAddresses()
    answer = register(routes, SLAVE, TopicConfig("onlyOnSlave"))
    assert answer == MasterAddresses(MASTER.address, MASTER.address + "-ha")
    assert addresses(routes) == [{0: MASTER.address, 1: SLAVE.address}]
    assert routes.topics() == ["T"]


def test_a_slave_without_a_master_learns_nothing() -> None:
    assert register(RouteInfoManager(), SLAVE) == MasterAddresses()


def test_a_registration_replaces_rows_only_when_its_data_version_changed(routes: RouteInfoManager) -> None:
    register(routes, MASTER, TopicConfig("T", 4, 4, perm=6))
    register(routes, MASTER, TopicConfig("T", 4, 4, perm=2))
    assert perm(routes) == 6
    register(routes, MASTER, TopicConfig("T", 4, 4, perm=2), version=V2)
    assert perm(routes) == 2


def test_a_registration_never_removes_rows(routes: RouteInfoManager) -> None:
    register(routes, MASTER, TopicConfig("T"), TopicConfig("U"))
    register(routes, MASTER, TopicConfig("U"), version=V2)
    assert set(routes.topics()) == {"T", "U"}


def test_a_full_registration_after_an_incremental_one_brings_the_missing_topics(routes: RouteInfoManager) -> None:
    register(routes, MASTER, TopicConfig("new"))
    register(routes, MASTER, TopicConfig("new"), TopicConfig("old"))
    assert set(routes.topics()) == {"new", "old"}


def test_a_slave_that_became_master_stands_under_one_id(routes: RouteInfoManager) -> None:
    register(routes)
    register(routes, SLAVE)
    routes.unregister_broker(MASTER)
    register(routes, SLAVE._replace(broker_id=0))
    assert addresses(routes) == [{0: SLAVE.address}]


def test_a_malformed_topic_changes_nothing(routes: RouteInfoManager) -> None:
    with pytest.raises(ValueError, match="many"):
        register(routes, MASTER, TopicConfig("T", read_queue_nums="many"))  # type: ignore[arg-type]
    assert routes.cluster_info().broker_addr_table == {}


def test_the_last_address_takes_name_cluster_and_topics_with_it(routes: RouteInfoManager) -> None:
    register(routes)
    register(routes, SLAVE)
    register(routes, OTHER, TopicConfig("T"), TopicConfig("U"))
    routes.unregister_broker(MASTER)
    assert addresses(routes) == [{1: SLAVE.address}, {0: OTHER.address}]
    routes.unregister_broker(SLAVE)
    assert addresses(routes) == [{0: OTHER.address}]
    assert routes.cluster_info().cluster_addr_table == {"C2": ["b"]}
    routes.unregister_broker(OTHER)
    assert routes.topics() == []
    assert routes.cluster_info().to_json() == b'{"brokerAddrTable":{},"clusterAddrTable":{}}'


def test_a_late_good_bye_does_not_remove_the_successor(routes: RouteInfoManager) -> None:
    register(routes)
    successor = MASTER._replace(address="10.0.0.9:10911")
    register(routes, successor)
    routes.unregister_broker(MASTER)
    assert addresses(routes) == [{0: successor.address}]


def test_a_closed_connection_removes_the_brokers_that_registered_on_it(routes: RouteInfoManager) -> None:
    register(routes, connection="old")
    register(routes, connection="new")
    assert routes.connection_closed("old") == []
    assert addresses(routes) == [{0: MASTER.address}]
    assert routes.connection_closed("new") == [MASTER.address]
    assert addresses(routes) == []


def test_a_broker_silent_for_longer_than_allowed_expires(routes: RouteInfoManager) -> None:
    register(routes, connection="a", now_s=0)
    register(routes, OTHER, connection="b", now_s=60)
    assert routes.remove_expired(120.0, 120) == []
    assert routes.remove_expired(120.1, 120) == [(MASTER.address, "a")]
    assert addresses(routes) == [{0: OTHER.address}]


def test_an_unchanged_data_version_is_a_sign_of_life_and_a_changed_one_is_not(routes: RouteInfoManager) -> None:
    assert routes.query_data_version(MASTER, V1, 0) == (True, None)
    register(routes, now_s=0)
    assert routes.query_data_version(MASTER, V1, 100) == (False, V1)
    assert routes.query_data_version(MASTER, V2, 200) == (True, V1)
    assert routes.remove_expired(219, 120) == []
    assert routes.remove_expired(221, 120) != []


def test_wiping_the_write_permission_lasts_until_the_next_changed_registration(routes: RouteInfoManager) -> None:
    register(routes, MASTER, TopicConfig("T", perm=7), TopicConfig("U"))
    assert finished(routes.wiping_write_perm("a")) == 2
    assert perm(routes) == 5
    register(routes, MASTER, TopicConfig("T", perm=7), TopicConfig("U"))
    assert perm(routes) == 5
    assert finished(routes.adding_write_perm("a")) == 2
    assert perm(routes) == 6
    register(routes, MASTER, TopicConfig("T", perm=7), version=V2)
    assert perm(routes) == 7
    assert finished(routes.wiping_write_perm("unknown")) == 0


def test_a_topic_is_deleted_everywhere_or_in_one_cluster(routes: RouteInfoManager) -> None:
    register(routes)
    register(routes, OTHER)
    routes.delete_topic("T", "C2")
    assert addresses(routes) == [{0: MASTER.address}]
    routes.delete_topic("T")
    routes.delete_topic("neverWas")
    assert routes.topics() == []


def test_topic_lists_by_cluster_and_by_unit_flags(routes: RouteInfoManager) -> None:
    unit, both, sub = FLAG_UNIT, FLAG_UNIT | FLAG_UNIT_SUB, FLAG_UNIT_SUB
    flagged = [TopicConfig(f"flag{flag}", topic_sys_flag=flag) for flag in (0, unit, both, sub)]
    register(routes, MASTER, *flagged)
    register(routes, OTHER, TopicConfig("U"))
    assert routes.topics_of_cluster("C2") == ["U"]
    assert routes.topics_of_cluster("unknown") == []
    assert routes.unit_topics(has=FLAG_UNIT) == ["flag1", "flag3"]
    assert routes.unit_topics(has=FLAG_UNIT_SUB) == ["flag3", "flag2"]
    assert routes.unit_topics(has=FLAG_UNIT_SUB, has_not=FLAG_UNIT) == ["flag2"]
    register(routes, OTHER, TopicConfig("flag0", topic_sys_flag=both), version=V2)
    assert "flag0" not in routes.unit_topics(has=FLAG_UNIT)  # one broker's word counts: the first one's


def test_system_topics_are_clusters_and_brokers_with_somebody_to_ask(routes: RouteInfoManager) -> None:
    assert routes.system_topics() == ([], None)
    register(routes)
    assert routes.system_topics() == (["C", "a"], MASTER.address)


def test_filter_servers_stand_in_the_route_until_an_empty_list_comes(routes: RouteInfoManager) -> None:
    register(routes, filter_servers=["10.0.0.1:30000"])
    route = routes.pickup_topic_route("T")
    assert route is not None
    assert route.filter_server_table == {MASTER.address: ["10.0.0.1:30000"]}
    register(routes)
    assert b'"filterServerTable":{}' in routes.pickup_topic_route("T").to_json()  # type: ignore[union-attr]


def test_a_route_is_a_copy(routes: RouteInfoManager) -> None:
    register(routes)
    addresses(routes)[0].clear()
    assert addresses(routes) == [{0: MASTER.address}]


def registering(routes: RouteInfoManager, count: int, digest: bytes = b"") -> Generator[None, None, MasterAddresses]:
    return routes.registering(
        MASTER,
        ha_address="",
        topics={f"T{number}": TopicConfig(f"T{number}", 4, 4) for number in range(count)},
        data_version=V1,
        filter_servers=[],
        connection="connection",
        now_s=0.0,
        digest=digest,
    )


def test_thousands_of_topics_come_in_slices(routes: RouteInfoManager) -> None:
    known = [len(routes.topics()) for _ in registering(routes, 10 * TOPICS_A_SLICE)]
    assert max(after - before for before, after in pairwise(known)) <= TOPICS_A_SLICE
    assert len(routes.topics()) == 10 * TOPICS_A_SLICE
    assert len(list(routes.wiping_write_perm("a"))) == 10
    assert perm(routes, "T0") == perm(routes, f"T{10 * TOPICS_A_SLICE - 1}") == 4


@pytest.mark.parametrize("step", [0, 3, 5, 9])
def test_a_broker_that_goes_while_its_topics_come_leaves_none(routes: RouteInfoManager, step: int) -> None:
    for number, _ in enumerate(registering(routes, 5 * TOPICS_A_SLICE)):
        if number == step and step >= 5:
            assert addresses(routes, "T0")
            routes.connection_closed("connection")
        elif number == step:
            assert routes.connection_closed("connection") == [], "it is not there before all rows are looked at"
    if step >= 5:
        assert routes.topics() == []


def test_what_a_broker_repeats_is_known_until_a_topic_is_deleted_or_it_goes(routes: RouteInfoManager) -> None:
    finished(registering(routes, 2, b"digest"))
    assert routes.is_known(MASTER, b"digest", "connection", 5.0)
    assert not routes.is_known(MASTER, b"another", "connection", 5.0)
    assert not routes.is_known(MASTER, b"digest", "another", 5.0)
    assert routes.remove_expired(124.0, 120) == [], "repeating is a sign of life"
    routes.delete_topic("T1")
    assert not routes.is_known(MASTER, b"digest", "connection", 5.0)
    finished(registering(routes, 2, b"digest"))
    routes.unregister_broker(MASTER)
    assert not routes.is_known(MASTER, b"digest", "connection", 5.0)
