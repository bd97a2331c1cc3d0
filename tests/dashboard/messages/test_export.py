"""What a search finds as a file: whole, bounded, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import AsyncClient

from dashboard.access.tokens import create_token
from dashboard.messages import export as exports
from dashboard.models.management import User
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic


async def file_of(client: AsyncClient, address: str, token: str = "", **given: Any) -> str:
    answer = await client.get(address, given, headers={"authorization": f"Bearer {token}"} if token else {})
    assert answer.status_code == 200, address
    assert answer["Content-Disposition"].startswith("attachment")
    return b"".join([part async for part in answer.streaming_content]).decode()


async def test_both_forms_hold_what_the_page_finds(log_in: Client, make_topic: Topic) -> None:
    bodies = [b"=1+1", 'Zoë\n"x"'.encode(), b"\xff\x00"]
    sent = [Message("saved", body, tags="t", keys=["k", f"k{at}"], properties={"p": "@x"})
            for at, body in enumerate(bodies)]  # fmt: skip
    await make_topic("saved", queues=2, messages=[*sent, Message("saved", b"other")])
    client = await log_in("reader")
    lines = [json.loads(line) for line in (await file_of(client, "/topic/saved/export/jsonl", q="tag:t")).splitlines()]
    assert [(line["body"], line["encoding"]) for line in lines] == [
        ("/wA=", "base64"), ('Zoë\n"x"', "text"), ("=1+1", "text")
    ]  # fmt: skip
    assert (lines[0]["keys"], lines[0]["properties"]["p"], lines[0]["size_bytes"]) == (["k", "k2"], "@x", 2)
    head, *rows = csv.reader(io.StringIO(await file_of(client, "/topic/saved/export/csv", q="tag:t")))
    assert tuple(head) == exports.COLUMNS
    assert [row[head.index("body")] for row in rows] == ["/wA=", 'Zoë\n"x"', "'=1+1"]
    found = await file_of(client, "/topic/saved/export/jsonl", q="k1")
    assert [json.loads(line)["body"] for line in found.splitlines()] == ['Zoë\n"x"'], "by the index, as on the page"
    assert len((await file_of(client, "/topic/saved/export/jsonl")).splitlines()) == 4
    assert (await client.get("/topic/saved/export/csv", {"since": "x"})).status_code == 302


async def test_a_file_that_is_cut_says_so_and_how_to_go_on(
    make_topic: Topic, users: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MESSAGES_MAX", 2)
    await make_topic("cut", queues=2, messages=[Message("cut", b"%d" % at) for at in range(5)])
    _, secret = await create_token(users["reader"], "export", "read", 7)
    client = AsyncClient()
    found, older, files = [], "", 0
    while files == 0 or older:
        since = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
        given = {"since": since, "cursor": older}
        lines = [
            json.loads(line)
            for line in (await file_of(client, "/api/v1/topics/cut/messages.jsonl", secret, **given)).splitlines()
        ]
        older = lines.pop()["next"] if "cut" in lines[-1] else ""
        found, files = found + [line["body"] for line in lines], files + 1
    assert (found, files) == (["4", "3", "2", "1", "0"], 3)
    *_, last = csv.reader(io.StringIO(await file_of(client, "/api/v1/topics/cut/messages.csv", secret)))
    assert last[0].startswith("cut: 2 messages") and last[1].startswith("next: ")
