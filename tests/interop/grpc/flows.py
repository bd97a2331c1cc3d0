"""What programs of RocketMQ 5's clients say of their flows, and what must be in it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

from appliance.bench.maven import ToolError, class_path, copied_jars, rocketmqs
from gantrymq import AdminClient
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from tests.conftest import missing, require_tool

HERE = Path(__file__).parent
QUICK_CHECKS = {"transactionCheckInterval": "1000", "transactionTimeOut": "1000"}
LIMIT_S = 300
TYPES = {"normal": "NORMAL", "fifo": "FIFO", "delay": "DELAY", "tx": "TRANSACTION"}


async def make_topics(namesrv: str, ordered_groups: Sequence[str] = ()) -> None:
    """The topics, each with its type. ordered_groups: with them FIFO's has none: these groups are what keeps order."""
    async with AdminClient(namesrv) as admin:
        for topic, kind in TYPES.items():
            attributes = None if topic == "fifo" and ordered_groups else {"+message.type": kind}
            await admin.topics.create(TopicConfig(topic, 4, 4, attributes=attributes))
        for group in ordered_groups:
            await admin.groups.create(SubscriptionGroupConfig(group, consume_message_orderly=True))


async def said_at(port: int, command: Sequence[str | Path], *more: str) -> list[list[str]]:
    """The lines of a program that gets the endpoints, and more, as its last arguments, as lists of words."""
    whole = [*map(str, command), f"127.0.0.1:{port}", *more]
    done = await asyncio.to_thread(subprocess.run, whole, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["DONE"] in lines, (done.stdout[-2000:], done.stderr[-2000:])
    return lines


def check(lines: list[list[str]]) -> None:
    """Nothing is missing, nothing came twice, what was recalled did not come, each message group is in order."""
    topics = ("normal", "fifo", "delay", "tx")
    got = {topic: [line[2] for line in lines if line[:2] == ["GOT", topic]] for topic in topics}
    assert sorted(got["normal"]) == sorted(f"n{number}" for number in range(20))
    assert (got["delay"], sorted(got["tx"])) == (["d0"], ["commit", "open"])
    assert ["CHECK", "open"] in lines
    assert ["RECALLED", "true"] in lines
    pushed = [line[1] for line in lines if line[0] == "PUSH"]
    for taken in (got["fifo"], pushed):
        for group in range(3):
            mine = [body for body in taken if int(body[1:]) % 3 == group]
            assert mine == [f"f{number}" for number in range(group, 12, 3)]


def java_flows(home: Path) -> list[str | Path]:
    """How Java's flows are run; without its tools the test skips aloud, and fails in CI."""
    for each in ("java", "javac", "mvn"):
        require_tool(each, "it runs RocketMQ 5's client for Java")
    try:
        jars = copied_jars(rocketmqs("5.2.0", "client-java"))
    except ToolError as exc:
        missing("RocketMQ 5's client for Java", str(exc))
        raise
    command = ["java", "-XX:TieredStopAtLevel=1", f"-Duser.home={home}", "-cp", class_path(jars)]
    return [*command, HERE / "java" / "Flows.java"]


def check_java(lines: list[list[str]]) -> None:
    check(lines)
    attempts = {line[2]: line[4] for line in lines if line[:2] == ["GOT", "normal"]}
    assert (["LATER", "n0"] in lines, attempts.pop("n0"), set(attempts.values())) == (True, "2", {"1"})
