"""Live pages over a real Redis, which goes away while tabs are open, and comes back."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import websocket

from tests.appliance_process import RunningAppliance
from tests.servers.redis import PASSWORD as SECRET
from tests.servers.redis import Redis, running_redis
from tests.visitor import Visitor, admin_of
from tests.waiting import wait_until

FRAMES_MAX = 20  # one of each kind is among so many
PART = "part:topic-list /topics"


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with running_redis() as running:
        yield running


@pytest.fixture(scope="module")
def gantry(redis: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
    data = tmp_path_factory.mktemp("over-redis") / "data"
    with RunningAppliance(data, environment={"GANTRY_CHANNEL_LAYER_URL": redis.url}) as running:
        yield running


@pytest.fixture(scope="module")
def administrator(gantry: RunningAppliance) -> Visitor:
    return admin_of(gantry)


def subscribed(visitor: Visitor) -> websocket.WebSocket:
    live = visitor.live()
    live.send(json.dumps({"subscribe": ["overview", PART]}))
    return live


def channels_of(live: websocket.WebSocket) -> set[str]:
    """The channels of the next frames; none when the socket was closed."""
    try:
        text = live.recv()
        return {frame["channel"] for frame in json.loads(text)["frames"]} if text else set()
    except (websocket.WebSocketException, OSError):
        return set()


def is_live(visitor: Visitor) -> bool:
    """Whether a new tab gets frames of both kinds."""
    try:
        live = subscribed(visitor)
    except (websocket.WebSocketException, OSError):
        return False
    seen: set[str] = set()
    for _ in range(FRAMES_MAX):
        found = channels_of(live)
        seen |= found
        if not found or seen == {"overview", PART}:
            break
    live.close()
    return seen == {"overview", PART}


def test_tabs_get_their_frames_over_redis(administrator: Visitor) -> None:
    wait_until(lambda: is_live(administrator))


def now(visitor: Visitor) -> str:
    """The Overview as far as it tells the present; what happened lately comes below."""
    return visitor.get("/").text.partition('class="card lately"')[0]


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_while_redis_is_away_pages_work_and_say_that_they_are_not_live(
    gantry: RunningAppliance, administrator: Visitor, redis: Redis, how: str
) -> None:
    wait_until(lambda: is_live(administrator))
    tab = subscribed(administrator)
    assert channels_of(tab)
    assert redis.process is not None
    redis.end() if how == "killed" else redis.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: "Pages are not live" in now(administrator))
        page = administrator.get("/").text
        assert f"redis://127.0.0.1:{redis.port}/0" in page and SECRET not in page
        wait_until(lambda: not channels_of(tab))  # its page connects again, in vain, and asks by itself
        assert administrator.get("/topics").status == 200
        assert not is_live(administrator)
    finally:
        redis.begin() if how == "killed" else redis.process.send_signal(signal.SIGCONT)
    wait_until(lambda: is_live(administrator))
    wait_until(lambda: "Pages are not live" not in now(administrator))


def test_s62_its_password_is_in_no_log(gantry: RunningAppliance, administrator: Visitor) -> None:
    texts = [gantry.output, *(path.read_text() for path in Path(gantry.data, "logs").iterdir() if path.is_file())]
    assert not any(SECRET in text for text in texts)
    assert not any("Traceback" in text for text in texts), "a Redis that is away is told in a line"
