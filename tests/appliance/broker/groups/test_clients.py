"""Producers by group and by client id."""

from __future__ import annotations

import pytest

from appliance.broker.groups.clients import ProducerManager
from tests.appliance.broker.members import member
from tests.waiting import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


@pytest.fixture
def producers(clock: Clock) -> ProducerManager:
    return ProducerManager(clock=clock)


def test_a_producer_is_found_by_group_and_by_client(producers: ProducerManager) -> None:
    one, two = member(1), member(2)
    producers.register("p", one, "c1", "JAVA", 401)
    producers.register("p", two, "c2", "JAVA", 401)
    producers.register("q", one, "c1", "JAVA", 401)
    assert producers.connection_of("c1") == one
    picked = {member.client_id for member in (producers.pick("p"), producers.pick("p")) if member is not None}
    assert picked == {"c1", "c2"}
    two.is_closing = True
    assert all(member is not None and member.client_id == "c1" for member in (producers.pick("p"), producers.pick("p")))
    producers.unregister("p", one)
    assert producers.connection_of("c1") == one, "it still produces for the group q"
    producers.connection_closed(one)
    producers.connection_closed(two)
    assert producers.connection_of("c1") is None
    assert producers.groups == {}
    assert producers.pick("p") is None


def test_a_reconnected_client_stays_known_when_its_old_connection_closes(producers: ProducerManager) -> None:
    old, new = member(1), member(2)
    producers.register("p", old, "c1", "JAVA", 401)
    producers.register("p", new, "c1", "JAVA", 401)
    producers.connection_closed(old)
    assert producers.connection_of("c1") == new


def test_clients_of_one_connection_are_forgotten_one_by_one(producers: ProducerManager) -> None:
    one = member(1)
    producers.register("p", one, "c1", "JAVA", 401)
    producers.register("q", one, "c1", "JAVA", 401)
    producers.register("p", one, "c2", "JAVA", 401)
    assert producers.connection_of("c1") == producers.connection_of("c2") == one, "the old name is still that of q"
    producers.unregister("p", one)
    assert producers.connection_of("c2") is None, "or names would pile up while the connection stands"
    producers.register("p", one, "c3", "JAVA", 401)
    producers.connection_closed(one)
    assert producers.connection_of("c1") is producers.connection_of("c3") is None
