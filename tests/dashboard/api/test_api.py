"""REST: the same services as the pages, for programs."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
from django.test import AsyncClient

from dashboard.access.tokens import create_token
from dashboard.cluster.gateway import Gateway, use_gateway
from dashboard.live.sampler import Sampler
from dashboard.models.management import Role, User
from dashboard.status.board import board
from dashboard.status.verdict import judge
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic, api_for
from tests.waiting import until


async def test_a_topic_lives_and_dies_over_rest(users: dict[str, User], gateway: Gateway) -> None:
    api = await api_for(users["operator"])
    status, made = await api.call("post", "/topics", {"name": "rest-topic", "write_queues": 2})
    assert (status, made["name"], made["write_queues"], made["perm"]) == (201, "rest-topic", 2, "read-write")
    await gateway.messages.send(Message("rest-topic", b"x"))
    status, seen = await api.call("get", "/topics/rest-topic")
    assert (status, seen["stored_messages"], len(seen["queue_extents"])) == (200, 1, 2)
    status, listed = await api.call("get", "/topics?q=rest-topic")
    assert (status, listed["total"], listed["items"][0]["stored_messages"]) == (200, 1, 1)
    status, changed = await api.call("put", "/topics/rest-topic", {"write_queues": 5})
    assert (status, changed["write_queues"], changed["read_queues"], changed["perm"]) == (200, 5, 5, "read-write")
    assert await api.call("delete", "/topics/rest-topic") == (204, None)
    assert (await api.call("get", "/topics/rest-topic"))[0] == 404
    assert (await api.call("delete", "/topics/rest-topic"))[0] == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "a/b"}, "name"),
        ({"name": "ok", "write_queues": 0}, "write_queues"),
        ({"name": "ok", "perm": "root"}, "perm"),
        ({"write_queues": 3}, "name"),
        ({"name": "ok", "write_queues": "many"}, "write_queues"),
    ],
)
async def test_each_wrong_field_is_named(
    body: dict[str, Any], field: str, users: dict[str, User], gateway: Gateway
) -> None:
    status, answer = await (await api_for(users["operator"])).call("post", "/topics", body)
    assert status == 422
    assert field in answer["fields"]


async def test_a_topic_is_not_made_twice_and_the_clusters_own_stay(users: dict[str, User], make_topic: Topic) -> None:
    api = await api_for(users["operator"])
    await make_topic("rest-twice")
    assert (await api.call("post", "/topics", {"name": "rest-twice"}))[0] == 409
    assert (await api.call("delete", "/topics/TBW102"))[0] == 409
    assert (await api.call("put", "/topics/TBW102", {"write_queues": 1}))[0] == 409


async def test_the_cluster_says_what_the_overview_says(users: dict[str, User], gateway: Gateway) -> None:
    api = await api_for(users["reader"], scope="read")
    assert (await api.call("get", "/cluster"))[0] == 503
    sampler = Sampler(gateway)
    await until(functools.partial(_has_a_rate, sampler))
    status, seen = await api.call("get", "/cluster")
    verdict = judge(board.snapshot)
    assert (status, seen["level"], seen["sentence"]) == (200, verdict.worst.word, verdict.sentence)
    [broker] = seen["brokers"]
    assert broker["is_answering"]
    assert {"send", "pull", "query", "transaction"} < {lane["name"] for lane in broker["lanes"]}
    assert seen["in_rate"] is not None


async def _has_a_rate(sampler: Sampler) -> bool:
    """Of two looks, one soon after the other."""
    return (await sampler.sample()).known_sum("in_rate")[0] is not None


async def test_a_silent_cluster_is_503_and_not_an_empty_list(users: dict[str, User]) -> None:
    use_gateway(Gateway("127.0.0.1:9"))
    status, answer = await (await api_for(users["reader"])).call("get", "/topics")
    use_gateway(None)
    assert status == 503
    assert "name server" in answer["detail"]


async def test_the_document_describes_every_operation(log_in: Client, users_token: str) -> None:
    for client, headers in ((await log_in("reader"), {}), (AsyncClient(), {"authorization": f"Bearer {users_token}"})):
        answer = await client.get("/api/v1/openapi.json", headers=headers)
        document = answer.json()
        assert set(document["paths"]["/api/v1/topics/{name}"]) == {"get", "put", "delete"}
        assert "token_hash" not in answer.content.decode().lower()
        operations = [operation for path in document["paths"].values() for operation in path.values()]
        assert len({operation["operationId"] for operation in operations}) == len(operations) > 60
        assert all(operation["summary"] and operation["tags"] for operation in operations)


@pytest.fixture
def users_token(log_in: Client) -> str:
    from asgiref.sync import async_to_sync

    return async_to_sync(create_token)(User.objects.get(role=Role.READER), "doc", "read", 7)[1]


async def test_the_page_of_the_document_has_every_operation_and_loads_from_here_only(log_in: Client) -> None:
    client = await log_in("reader")
    page = (await client.get("/api/v1/docs")).content.decode()
    assert "`" not in page and "the <code>next</code> of the answer before" in page
    document = (await client.get("/api/v1/openapi.json")).json()
    ids = {one["operationId"] for methods in document["paths"].values() for one in methods.values()}
    assert ids == set(re.findall(r'<details class="operation" id="(\w+)">', page))
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "read-write | read | write" in page and "1 … 256" in page  # what create_topic takes
