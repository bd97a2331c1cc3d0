"""Options of producers at running brokers: how large messages may be, and how topics are made."""

from __future__ import annotations

import contextlib

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, Message, Producer, SendStatus
from gantrymq.errors import MessageRejected, RouteNotFound, SendIncomplete
from gantrymq.remoting.bodies import TopicRouteData
from tests.gantrymq.client.peers import topic_at
from tests.gantrymq.client.seen import numbers
from tests.peers.dispatch import until_dispatched
from tests.waiting import until


async def test_what_is_larger_than_the_producer_allows_is_refused_before_it_is_sent(peer: Peer) -> None:
    name = f"sizes_{next(numbers)}"
    large, fitting = Message(name, b"x" * 101), Message(name, b"x" * 100)
    async with topic_at(peer, name) as admin, Producer(peer.namesrv_address, message_bytes_max=100) as producer:
        for refused in (
            lambda: producer.send(large),
            lambda: producer.send_oneway(large),
            lambda: producer.send_soon(large),
            lambda: producer.send_batch([fitting, fitting]),  # more than 100 bytes together
        ):
            with pytest.raises(MessageRejected, match="100"):
                await refused()
        with pytest.raises(SendIncomplete) as caught:
            await producer.send_many([fitting, large])
        assert list(caught.value.failures) == [1]
        assert (await producer.send(fitting)).status is SendStatus.SEND_OK

        await until_dispatched(peer)
        offsets = await admin.topics.offsets(name)
        assert sum(at.max_offset - at.min_offset for at in offsets.values()) == 2


async def test_a_topic_made_by_its_first_message_has_as_many_queues_as_the_producer_says(peer: Peer) -> None:
    name = f"made_{next(numbers)}"
    async with Producer(peer.namesrv_address, new_topic_queues=6) as producer:
        assert len(await producer.queues(name)) == 6
        result = await producer.send(Message(name, b"x"))
        async with topic_at(peer, f"other_{name}") as admin:  # what registers the topics at the name server
            route = await routed(admin, name)
    assert [data.write_queue_nums for data in route.queue_datas] == [6]
    assert result.queue.queue_id < 6


async def routed(admin: AdminClient, topic: str) -> TopicRouteData:
    """The route of a topic that a broker has made, once the name server knows it."""
    found: list[TopicRouteData] = []

    async def is_known() -> bool:
        with contextlib.suppress(RouteNotFound):
            found.append(await admin.topics.route(topic))
        return bool(found)

    await until(is_known)
    return found[0]
