"""docs/migration.md, followed to the letter with Apache RocketMQ 4.9.7, while clients of both makes send and consume.

The page's folder has what RocketMQ's distribution has in bin/, written here around Maven's jars. Its mqshutdown waits
for the end, as the page tells people to.
"""

from __future__ import annotations

import contextlib
import shlex
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.apache_peer import ApachePeer
from appliance.bench.processes import free_ports
from gantrymq import ConsumeFrom, Message, SyncPushConsumer
from tests.docs.pages import ROOT
from tests.faults.replication.history import Log
from tests.faults.replication.logs import read_log
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.migration.rehearsal import Rehearsal, rehearsal, sections
from tests.peers.fixtures import PATIENT, make_apache_peer
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "migration.md"
SECTIONS = sections(PAGE)
TOPIC, GROUP = "orders", "readers"
A_SECOND = 20
FOLDER_FILES = {**PATIENT, "mappedFileSizeCommitLog": str(4 << 20), "brokerIP1": "127.0.0.1", "brokerIP2": "127.0.0.1"}
SCRIPTS = {
    "mqbroker": 'echo $$ > "${0%/*}/broker.pid"\nexec COMMAND "$@"\n',
    "mqshutdown": (
        'pid=$(cat "${0%/*}/broker.pid")\nkill "$pid"\nwhile kill -0 "$pid" 2> /dev/null; do sleep 0.2; done\n'
        'echo "Send shutdown request to mqbroker($pid) OK"\n'
    ),
}


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[ApachePeer]:
    """A running name server of Apache's, and how its broker is run."""
    peer = make_apache_peer(tmp_path)
    peer.start_namesrv()
    try:
        yield peer
    finally:
        peer.stop()


@pytest.fixture
def page(apache: ApachePeer, tmp_path: Path) -> Iterator[Rehearsal]:
    """The folder with RocketMQ's broker running in it, as the page finds it."""
    (tmp_path / "bin").mkdir()
    command = shlex.join(str(word) for word in apache.broker_command(Path("x"))[:-2])
    for name, text in SCRIPTS.items():
        path = tmp_path / "bin" / name
        path.write_text("#!/bin/bash\n" + text.replace("COMMAND", command))
        path.chmod(0o755)
    ports = {9876: int(apache.namesrv_address.rpartition(":")[2]), 10911: free_ports(1, -2), 10921: free_ports(1, -2)}
    further = {".conf": "".join(f"{key}={value}\n" for key, value in FOLDER_FILES.items())}
    with rehearsal(tmp_path, ports=ports, further=further, env={"GANTRY_NAMESRV": apache.namesrv_address}) as played:
        played.play(next(block for block in SECTIONS["On the same folder"] if block.language == "properties"))
        played.run("bin/mqbroker -c conf/broker.conf > mqbroker.log 2>&1 &")
        wait_until(lambda: ports[10911] in rpc.registered_ports(apache.namesrv_address))
        wait_until(lambda: rpc.max_offsets(f"127.0.0.1:{ports[10911]}", "TBW102", 1) != [])
        rpc.create_topic(f"127.0.0.1:{ports[10911]}", TOPIC, 4)
        yield played


class Traffic:
    """A producer and a consumer of the official Java client, and a consumer of the SDK."""

    def __init__(self, producer: ClientProgram, consumer: ClientProgram, bodies: set[str]) -> None:
        self.producer = producer
        self.consumer = consumer
        self.bodies = bodies  # that the SDK's consumer got

    def acknowledged(self) -> set[str]:
        return {f"key-{sent.number}" for sent in self.producer.sent()}

    def more(self) -> None:
        """Wait until more was acknowledged, and all of it consumed by both."""
        before = len(self.acknowledged())
        wait_until(lambda: len(self.acknowledged()) > before + A_SECOND)
        wanted = self.acknowledged()
        wait_until(lambda: wanted <= {got.keys for got in self.consumer.got()} and wanted <= self.bodies)


@contextlib.contextmanager
def traffic(namesrv: str, java: JavaClient) -> Iterator[Traffic]:
    seen: set[str] = set()

    def listener(messages: list[Message]) -> None:
        seen.update(key for message in messages for key in message.keys)

    ours = SyncPushConsumer(namesrv, group=GROUP, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET)
    ours.subscribe(TOPIC)
    producing = java.produce(namesrv, TOPIC, 1 << 20, A_SECOND)
    with ours, java.consume(namesrv, TOPIC, "java-readers") as consumer, producing as producer:
        yield Traffic(producer, consumer, seen)


def placed(log: Log) -> defaultdict[int, list[tuple[int, int]]]:
    """By number of the Java producer's messages: queue and queue offset, more than once for what it sent again."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for stored in log.stored:
        if stored.queue.topic == TOPIC:
            found[int(stored.body.split(b"-")[1])].append((stored.queue.queue_id, stored.queue_offset))
    return found


@pytest.mark.parametrize(("section", "store"), [("On the same folder", "store"), ("With a slave", "gantry/store")])
def test_clients_keep_running_while_the_page_is_followed(
    page: Rehearsal, apache: ApachePeer, java: JavaClient, section: str, store: str
) -> None:
    with traffic(apache.namesrv_address, java) as clients:
        clients.more()
        for block in SECTIONS[section]:
            page.play(block)
        clients.more()
        acknowledged = {sent.number: (sent.queue_id, sent.queue_offset) for sent in clients.producer.sent()}
        found = placed(read_log("new master", page.folder / store))
        assert {
            number: found.get(number, []) for number, place in acknowledged.items() if place not in found[number]
        } == {}
