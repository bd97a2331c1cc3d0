"""A rate says what it counts and over which time it is a mean, on each page that shows one."""

from __future__ import annotations

import re

from dashboard.cluster.gateway import Gateway
from dashboard.groups.listing import COLUMNS
from dashboard.live.sampler import Sampler
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic

MINUTE = "mean of about the last minute"
STORED = f"messages stored per second, system topics included: {MINUTE}"
DELIVERED = f"messages sent to consumers per second, consumed or not: {MINUTE}"

PAGES = {
    "/": [STORED, DELIVERED] * 2,  # the tiles, and the heads of the table
    "/brokers": [STORED, DELIVERED],
    "/broker/{broker}": [STORED, DELIVERED],
    "/topics": [MINUTE] * 2,
    "/topic/windows": [MINUTE],
}


async def test_the_window_of_a_rate_is_named_beside_it(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("windows", messages=[Message("windows", b"x")])
    [broker] = (await Sampler(gateway).sample()).brokers
    client, named = await log_in("reader"), {}
    for page in PAGES:
        answer = await client.get(page.format(broker=broker.name))
        assert answer.status_code == 200, page
        said = re.findall(r'<(?:small|th)[^>]* title="([^"]*mean of [^"]*)"', answer.content.decode())
        named[page] = said
    assert named == PAGES
    heads = (await client.get("/topics")).content.decode().partition("</thead>")[0]
    assert (COLUMNS["out"][0] in heads, "Out" in heads) == (True, False)  # what waits in a member is not consumed
