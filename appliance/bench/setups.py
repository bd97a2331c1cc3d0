"""How the brokers of a load are set up: properties of both makes, and files that are there before they start."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from appliance.bench.load_spec import TOPIC_DIGITS
from gantrymq.remoting.signature import Credentials

ACCOUNT = Credentials("benchAccount", "benchSecret1", stamped=False)
MANY_TOPIC = "BenchMany"  # followed by a number
MANY_QUEUES = 8  # of each of these topics


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The peers of one setup run side by side, those of the next after them."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    accounts: bool = False  # all requests must be signed
    topics: int = 0  # so many numbered ones, of MANY_QUEUES queues each, instead of those of the scenarios
    idle: bool = False  # for start-up time and idle memory: a small heap
    slave: bool = False  # each broker has one, of its own make
    apache: bool = True  # whether Apache's broker can do it

    @property
    def credentials(self) -> Credentials | None:
        return ACCOUNT if self.accounts else None

    def prepare(self, home: Path) -> dict[str, str]:
        """Write the files for a broker with this home folder; returns its properties."""
        properties = dict(self.properties)
        if self.accounts:
            write_accounts(home)
            properties["rocketmqHome"] = str(home)
        if self.topics:
            write_topics(home / "store" / "config", self.topics)
        return properties


PLAIN = Setup(name="plain")
IDLE = Setup(name="idle", idle=True)
ACCOUNTS = Setup(name="accounts", properties={"aclEnable": "true"}, accounts=True)
SYNC = Setup(name="sync", properties={"flushDiskType": "SYNC_FLUSH"})
PAIR = Setup(name="pair", properties={"slavesEnable": "true"}, slave=True)
SYNC_PAIR = Setup(name="sync-pair", properties={"slavesEnable": "true", "brokerRole": "SYNC_MASTER"}, slave=True)
# Apache's broker maps a file for each queue, and the kernel allows a process 65 530 maps by default.
MANY = Setup(name="many", topics=10_000, apache=False)


def write_accounts(home: Path) -> None:
    """One administrator, in RocketMQ's plain_acl.yml."""
    (home / "conf" / "acl").mkdir(parents=True, exist_ok=True)
    path = home / "conf" / "plain_acl.yml"
    path.touch(0o600)
    path.write_text(
        "accounts:\n"
        f"- {{accessKey: {ACCOUNT.access_key}, secretKey: {ACCOUNT.secret_key}, admin: true, "
        "defaultTopicPerm: PUB|SUB, defaultGroupPerm: PUB|SUB}\n"
    )


def write_topics(folder: Path, count: int) -> None:
    """topics.json with numbered topics: creating thousands by request would take longer than measuring."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{MANY_TOPIC}{number:0{TOPIC_DIGITS}d}" for number in range(count)]
    table = {name: _topic(name) for name in names}
    version = {"counter": 1, "timestamp": int(time.time() * 1000)}
    (folder / "topics.json").write_bytes(orjson.dumps({"dataVersion": version, "topicConfigTable": table}))


def _topic(name: str) -> dict[str, object]:
    return {
        "order": False,
        "perm": 6,
        "readQueueNums": MANY_QUEUES,
        "topicFilterType": "SINGLE_TAG",
        "topicName": name,
        "topicSysFlag": 0,
        "writeQueueNums": MANY_QUEUES,
    }
