"""Who is connected, page by page, and the end of a connection that an operator asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.broker.groups import connected
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.appliance.peer import connected as connected_peer


async def listed(tool: Tool, after: int = 0) -> tuple[list[dict[str, Any]], int]:
    answer = await tool.ask(RequestCode.GET_CONNECTIONS, {"after": str(after)})
    assert answer.code == 0, answer.remark
    page = fastjson.loads(answer.body)
    return page["connections"], page["next"]


async def test_a_connection_tells_its_client_its_groups_and_how_much_it_asked(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T", client_id="10.0.0.1@c"):
        [one] = [each for each in (await listed(tool))[0] if each["clientIds"]]
        assert (one["clientIds"], one["consumerGroups"], one["producerGroups"]) == (["10.0.0.1@c"], ["G"], ["PG_tool"])
        assert (one["tls"], one["account"], one["groups"], one["language"]) == (False, "", 2, "JAVA")
        assert one["requests"] == 1  # its heartbeat
        assert one["openedAt"] <= one["lastSeenAt"]
        [tools] = [each for each in (await listed(tool))[0] if not each["clientIds"]]
        assert tools["requests"] >= 2


async def test_many_connections_come_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected, "PAGE_MAX", 2)
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T", client_id="c1"), tool.consumer("H", "T"):
        first, after = await listed(tool)
        rest, end = await listed(tool, after)
        numbers = [each["number"] for each in (*first, *rest)]
        assert (len(first), len(rest), end) == (2, 1, 0)
        assert numbers == sorted(set(numbers))


async def test_a_client_is_disconnected_by_its_id_and_others_stay(tmp_path: Path) -> None:
    async with (
        tool_at(tmp_path) as tool,
        tool.consumer("G", "T", client_id="c1") as one,
        tool.consumer("H", "T", client_id="c2"),
    ):
        answer = await tool.ask(RequestCode.CLOSE_CONNECTIONS, {"clientId": "c1"})
        assert (answer.code, answer.ext_fields["count"]) == (0, "1")
        await one.until_closed()
        left = [each["clientIds"] for each in (await listed(tool))[0]]
        assert ["c2"] in left and ["c1"] not in left


async def test_an_address_is_disconnected_but_never_the_asking_one(tool: Tool) -> None:
    [own] = (await listed(tool))[0]
    answer = await tool.ask(RequestCode.CLOSE_CONNECTIONS, {"address": own["address"]})
    assert (answer.code, answer.ext_fields["count"]) == (0, "0")
    async with connected_peer(tool.broker.port) as other:
        [its] = [each for each in (await listed(tool))[0] if each["number"] != own["number"]]
        answer = await tool.ask(RequestCode.CLOSE_CONNECTIONS, {"address": its["address"]})
        assert answer.ext_fields["count"] == "1"
        await other.until_closed()
    refused = await tool.ask(RequestCode.CLOSE_CONNECTIONS, {})
    assert refused.code == ResponseCode.INVALID_PARAMETER
