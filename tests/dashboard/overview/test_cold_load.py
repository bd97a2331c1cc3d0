"""What a browser fetches for its first look at the Overview: how many requests, and how many bytes."""

from __future__ import annotations

import gzip
import re
import time

from dashboard.cluster.gateway import Gateway
from dashboard.live.sampler import Sampler
from dashboard.models.management import Role
from dashboard.status.board import Point, board
from tests.dashboard.conftest import Client

REQUESTS_MAX = 8
BYTES_MAX = 80_000
ASKED = {"Accept-Encoding": "gzip, br"}


async def test_the_overview_is_eight_requests_and_80_kb_when_its_chart_is_full(
    log_in: Client, gateway: Gateway
) -> None:
    sampler, now = Sampler(gateway), time.time()
    await sampler.sample()
    board.points.clear()
    board.points.extend(Point(now - ago, 1234.5 + ago % 7, 2345.6 + ago % 11) for ago in range(900, 0, -1))
    client = await log_in(Role.ADMIN)
    page = await client.get("/", headers=ASKED)
    shown = page.content.decode()
    parts = dict.fromkeys(re.findall(r'(?:src|href)="(/(?:static|words)[^"]+)"', shown))
    sizes = {address: len((await client.get(address, headers=ASKED)).content) for address in parts}
    sizes["/"] = len(page.content)
    board.points.clear()
    assert len(sizes) <= REQUESTS_MAX, sizes
    assert sum(sizes.values()) <= BYTES_MAX, sizes


async def test_the_scripts_words_are_compressed_for_who_takes_that(log_in: Client) -> None:
    client = await log_in(Role.READER)
    [address] = set(re.findall(r'src="(/words[^"]+)"', (await client.get("/topics")).content.decode()))
    plain, packed = await client.get(address), await client.get(address, headers=ASKED)
    assert packed["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain.headers
    assert gzip.decompress(packed.content) == plain.content and packed["Vary"] == plain["Vary"] == "Accept-Encoding"
