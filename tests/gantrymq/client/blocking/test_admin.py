"""AdminClient for threads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, Message, SyncAdminClient, SyncProducer, TopicConfig
from gantrymq.errors import ClientClosed, RouteNotFound
from tests.gantrymq.client.ports import closed_port


def parts() -> Iterator[tuple[str, object, object]]:
    """Each part of the original and its twin."""
    original, twin = AdminClient(closed_port()), SyncAdminClient(closed_port())
    for name, part in vars(original).items():
        if type(part).__name__.endswith("Admin"):
            yield name, part, getattr(twin, name)


def test_every_call_has_its_twin_with_the_same_arguments_and_help() -> None:
    for part, original, twin in parts():
        assert _public(twin) == _public(original), part
        for name, call in inspect.getmembers(type(original), inspect.isfunction):
            if name.startswith("_"):
                continue
            own = getattr(type(twin), name)
            assert inspect.signature(own).parameters == inspect.signature(call).parameters, f"{part}.{name}"
            assert inspect.getdoc(own) == inspect.getdoc(call), f"{part}.{name}"
            assert own.__name__ == name and not inspect.iscoroutinefunction(own), f"{part}.{name}"


def _public(part: object) -> set[str]:
    return {name for name in dir(type(part)) if not name.startswith("_")}


def test_a_thread_administers_a_broker(peer_of: Callable[[str], Peer]) -> None:
    peer = peer_of("gantry")
    with SyncAdminClient(peer.namesrv_address) as admin, SyncProducer(peer.namesrv_address) as producer:
        assert admin.topics.create(TopicConfig("blocking_admin", 1, 1)) == [peer.broker_name]
        assert "blocking_admin" in admin.topics.names()
        producer.send_batch([Message("blocking_admin", b"%d" % number) for number in range(3)])
        found = admin.messages.read_queue_at(peer.broker_address, "blocking_admin", 0, 0)
        assert [message.body for message in islice(found, 2)] == [b"0", b"1"]
        assert [message.body for message in found] == [b"2"]
        assert admin.name_servers.addresses == [peer.namesrv_address]
        with pytest.raises(RouteNotFound):
            admin.topics.route("not_there")
    with pytest.raises(ClientClosed):
        admin.topics.names()
