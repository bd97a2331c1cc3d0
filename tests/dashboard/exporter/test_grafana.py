"""The board in deploy/grafana: each panel asks for figures that there are, and gets some from a real Prometheus."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from django.test import AsyncClient

from appliance.bench.processes import free_ports
from dashboard.access.tokens import create_token
from dashboard.cluster.gateway import Gateway
from dashboard.exporter.page import families
from dashboard.live.sampler import Sampler
from dashboard.models.management import User
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot, board
from gantrymq import ConsumeResult, PushConsumer
from gantrymq.message.model import Message
from tests.conftest import require_tool
from tests.dashboard.conftest import Topic
from tests.waiting import until

BOARD = Path(__file__).parents[3] / "deploy/grafana/gantrymq.json"
NAME = re.compile(r"\b(?:rocketmq|gantry)_\w+")


def expressions() -> dict[str, list[str]]:
    """Each panel's expressions, by its title."""
    panels = json.loads(BOARD.read_text())["panels"]
    return {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in panels}


def test_every_panel_asks_for_figures_that_there_are() -> None:
    known = {family.name for family in families(Snapshot(1.0, "", None, (), (), None))}
    asked = {name for all_ in expressions().values() for expression in all_ for name in NAME.findall(expression)}
    assert len(expressions()) >= 12 and len(asked) >= 12
    assert asked <= known


async def test_what_slaves_copy_counts_once_and_what_they_give_counts(users: dict[str, User], tmp_path: Path) -> None:
    """As on the Overview. Both slaves are up, so they are two lines to Prometheus."""
    require_tool("prometheus", "no expression of the board is computed")
    states = []
    for broker_id, name in enumerate(("broker-a", "broker-a:1", "broker-a:2")):
        facts = BrokerFacts(name, f"10.0.0.1:{broker_id}", time.time(), "C", {}, in_rate=5.0, out_rate=2.0)
        states.append(BrokerState(name, facts.address, facts, broker_id=broker_id))
    board.put(Snapshot(time.time(), "n:1", None, tuple(states), (), None))
    _, secret = await create_token(users["reader"], "prometheus", "metrics", 7)
    (tmp_path / "token").write_text(secret)
    async with page_server() as target, prometheus(tmp_path, target) as address:
        shown = expressions()
        for expression, expected in zip(
            (*shown["Messages in and out"], *shown["Brokers that answer"]), (5.0, 6.0, 3.0), strict=True
        ):
            await until(functools.partial(has_data, address, expression))
            assert await asyncio.to_thread(values, address, expression) == [expected]


async def listener(_: object) -> ConsumeResult:
    return ConsumeResult.SUCCESS


async def test_every_panel_has_data_from_a_real_prometheus(
    gateway: Gateway, make_topic: Topic, users: dict[str, User], tmp_path: Path
) -> None:
    require_tool("prometheus", "the board's expressions are compared with the names of figures only")
    topic = await make_topic("on-the-board", messages=[Message("on-the-board", b"x") for _ in range(9)])
    _, secret = await create_token(users["reader"], "prometheus", "metrics", 7)
    (tmp_path / "token").write_text(secret)
    async with (
        looking(gateway),
        page_server() as target,
        consuming(gateway.namesrv, topic),
        prometheus(tmp_path, target) as address,
    ):
        for all_ in expressions().values():
            for expression in all_:
                await until(functools.partial(has_data, address, expression))


@asynccontextmanager
async def looking(gateway: Gateway) -> AsyncIterator[None]:
    """The sampler runs, as in the appliance."""
    task = asyncio.create_task(Sampler(gateway, keep=board).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def consuming(namesrv: str, topic: str) -> AsyncIterator[None]:
    """A group that reads the topic, so that lags and members are known."""
    consumer = PushConsumer(namesrv, group="board-readers", listener=listener)
    consumer.subscribe(topic)
    async with consumer:
        yield


@asynccontextmanager
async def page_server() -> AsyncIterator[str]:
    """The dashboard's own view behind a socket; returns host and port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        token = next((line[15:] for line in head.splitlines() if line.lower().startswith("authorization: ")), "")
        answer = await AsyncClient().get("/metrics", headers={"authorization": token})
        kind = answer.headers["Content-Type"]
        writer.write(f"HTTP/1.0 {answer.status_code} -\r\nContent-Type: {kind}\r\n\r\n".encode() + answer.content)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def prometheus(folder: Path, target: str) -> AsyncIterator[str]:
    """Debian's, which reads the page every two seconds with the token in a file."""
    address = f"127.0.0.1:{free_ports(1)}"
    jobs = [{
        "job_name": "gantrymq", "scrape_interval": "2s", "scrape_timeout": "2s",
        "authorization": {"credentials_file": str(folder / "token")}, "static_configs": [{"targets": [target]}],
    }]  # fmt: skip
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))  # JSON is YAML
    process = await asyncio.create_subprocess_exec(
        "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address={address}", "--log.level=error",
    )  # fmt: skip
    try:
        yield address
    finally:
        process.terminate()
        await process.wait()


def values(address: str, expression: str) -> list[float]:
    """What the expression is there now. Blocking. OSError while it does not listen."""
    url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return [float(one["value"][1]) for one in json.load(answer)["data"]["result"]]


async def has_data(address: str, expression: str) -> bool:
    """Whether the expression has a value there."""
    try:
        return bool(await asyncio.to_thread(values, address, expression))
    except OSError:  # it does not listen yet
        return False
