"""What the table of mqadmin's commands needs: topics, messages, a consumer and a producer that are online."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from appliance.bench import rpc
from appliance.bench.peer import CLUSTER_NAME, Peer
from gantrymq.errors import GantryError
from gantrymq.remoting.admin_bodies import ConsumerConnection
from gantrymq.remoting.codes import RequestCode
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.mqadmin.commands import Case
from tests.interop.mqadmin.session import MqAdminSession
from tests.waiting import WITHIN_S

SENT = 20
QUEUES = 4
HOUR_MS = 3_600_000
MONITORING = "TOOLS_CONSUMER"  # the group of startMonitoring
LIMIT_S = 120.0  # of a command that ends by itself, however busy the machine is
BODIES = re.compile(r"^Message Body Path: +(/tmp/rocketmq/msgbodys/\w+)$", re.MULTILINE)


@dataclass
class Scene:
    """Runs cases; `values` are what their words in braces stand for."""

    session: MqAdminSession
    values: dict[str, str]
    names: dict[str, str]  # texts that differ from run to run, with what stands for them in a shape

    def fill(self, text: str) -> str:
        return text.format(**self.values)

    def pattern(self, text: str) -> str:
        """An expression with values in it that are taken as they are."""
        return text.format(**{name: re.escape(value) for name, value in self.values.items()})

    def missing(self, case: Case, text: str) -> list[str]:
        """What the case has to show and the text does not."""
        return [pattern for pattern in case.shows if not re.search(self.pattern(pattern), text, re.MULTILINE)]

    def answer(self, case: Case) -> str:
        """What the command printed or wrote, or how it failed: then it does not show what it should."""
        deadline = time.monotonic() + case.within_s
        limit_s = case.limit_s or LIMIT_S
        while True:
            try:
                text = self.run(case, limit_s)
            except (AssertionError, OSError) as exc:
                text = f"failed: {exc}"
            if time.monotonic() >= deadline or not self.missing(case, text):
                return text
            time.sleep(0.5)
            limit_s = min(2 * limit_s, LIMIT_S)  # an endless command shows nothing before its first round

    def run(self, case: Case, limit_s: float) -> str:
        """What the command printed or wrote. Raises AssertionError when it didn't end, or ended before its limit."""
        arguments = self.fill(case.arguments).split()
        arguments += ["-n", self.values["namesrv"]]
        started = self.session.run(*arguments, limit_s=limit_s)
        assert started.was_cut == (case.limit_s is not None), (case.arguments, started)
        text = started.text
        if case.file:
            assert "success" in text, (case.arguments, text)
            text = (Path(self.values["folder"]) / case.file).read_text()
        for path in BODIES.findall(text):
            Path(path).unlink(missing_ok=True)  # where they are written can't be chosen
        return text


@contextlib.contextmanager
def scene(peer: Peer, java: JavaClient, session: MqAdminSession, folder: Path) -> Iterator[Scene]:
    """The scene while the block runs; `folder` takes what is exported."""
    # As many queues as new topics have: a busy Java client takes their number for that of a topic it has no route of.
    for topic in ("AdminTopic", "AdminLive", "AdminTraced"):
        rpc.create_topic(peer.broker_address, topic, QUEUES)
    with (
        java.run("Traced", peer.namesrv_address, "AdminTraced", "AdminTraced", "") as traced,
        java.consume(peer.namesrv_address, "AdminTopic", "AdminGroup") as consumer,
        java.run("Produce", peer.namesrv_address, "AdminLive", "AdminProducers", 100_000, 2) as producer,
    ):
        try:
            consumer.wait_started()
            sent = _messages(peer, java, consumer)
            _wait_holding_every_queue(peer, consumer)
            consumer.wait_for(lambda: _confirmed(peer) >= SENT, "the broker to know the group's places")
            producer.wait_started()
            traced.wait_done()
            values = _values(peer, folder, sent) | {"traced_id": traced.lines("SENT")[0][0]}
            yield Scene(session, values, {str(folder): "<folder>"})
        finally:
            producer.kill()  # it would go on for hours
            consumer.kill()  # saying good-bye takes it ten seconds


def _messages(peer: Peer, java: JavaClient, consumer: ClientProgram) -> ClientProgram:
    with java.produce(peer.namesrv_address, "AdminTopic", SENT) as producer:
        producer.wait_done()
    consumer.wait_for(lambda: consumer.count("GOT") >= SENT, "every message")
    return producer


def _wait_holding_every_queue(peer: Peer, consumer: ClientProgram) -> None:
    """Until the consumer has its retry topic's queue, too: it learns later that the topic was made."""
    fields = {"consumerGroup": "AdminGroup", "clientId": _member(peer)}

    def holds() -> bool:
        try:
            info = rpc.ask(peer.broker_address, RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        except GantryError:
            return False  # the consumer did not answer in time
        return b"%RETRY%AdminGroup" in info.body.partition(b'"mqTable"')[2].partition(b'"properties"')[0]

    consumer.wait_for(holds, "queue of the retry topic")


def _confirmed(peer: Peer) -> int:
    """How many messages the group has confirmed. Java does so ten seconds after its start, or with a later pull."""
    count = 0
    for queue_id in range(QUEUES):
        fields = {"consumerGroup": "AdminGroup", "topic": "AdminTopic", "queueId": str(queue_id)}
        with contextlib.suppress(GantryError):  # not yet in this queue
            answer = rpc.ask(peer.broker_address, RequestCode.QUERY_CONSUMER_OFFSET, fields)
            count += int(answer.ext_fields["offset"])
    return count


def wait_for_monitoring(peer: Peer) -> None:
    """Until what startMonitoring runs is known: its consumer to the broker, its retry topic to the name server."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            rpc.ask(peer.broker_address, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": MONITORING})
            rpc.ask(peer.namesrv_address, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": f"%RETRY%{MONITORING}"})
            return
        except GantryError:  # not yet
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _member(peer: Peer) -> str:
    """The id of the consumer that is online."""
    fields = {"consumerGroup": "AdminGroup"}
    online = rpc.ask(peer.broker_address, RequestCode.GET_CONSUMER_CONNECTION_LIST, fields)
    (member,) = ConsumerConnection.from_json(online.body).connection_set
    return member.client_id


def _values(peer: Peer, folder: Path, producer: ClientProgram) -> dict[str, str]:
    message = producer.sent()[3]
    now = time.time_ns() // 1_000_000
    return addresses(peer) | {
        "client_id": _member(peer),
        "unique_id": message.unique_id,
        "offset_id": message.offset_id,
        "wrong_id": f"{message.offset_id[:16]}{1 << 40:016X}",
        "folder": str(folder),
        "begin": str(now - HOUR_MS),
        "now": str(now),
    }


def addresses(peer: Peer) -> dict[str, str]:
    """The values that say where the cluster is."""
    return {
        "namesrv": peer.namesrv_address,
        "broker": peer.broker_address,
        "broker_name": peer.broker_name,
        "cluster": CLUSTER_NAME,
    }
