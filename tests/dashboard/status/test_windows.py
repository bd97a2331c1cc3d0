"""A rate says over which time it is a mean, on each page that shows one."""

from __future__ import annotations

import re

from dashboard.cluster.gateway import Gateway
from dashboard.live.sampler import Sampler
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic

MINUTE = "last minute"


PAGES = {
    "/": [MINUTE] * 4,  # the tiles, and the heads of the table
    "/brokers": [MINUTE] * 2,
    "/broker/{broker}": [MINUTE] * 2,
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
        said = re.findall(r'<(?:small|th)[^>]* title="mean (?:of about the )?([^"]*)"', answer.content.decode())
        named[page] = said
    assert named == PAGES
