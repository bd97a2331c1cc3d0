"""An appliance under load while a test makes backups of it, and what a copy that was restored elsewhere has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gantrymq import (
    ConsumeFrom,
    ConsumeResult,
    Message,
    SyncAdminClient,
    SyncProducer,
    SyncPullConsumer,
    SyncPushConsumer,
    TopicConfig,
)
from gantrymq.remoting import fastjson
from tests.any_disk import SLOW_DISK
from tests.appliance_process import PROPERTIES, RunningAppliance
from tests.visitor import Visitor, admin_of
from tests.waiting import wait_until

TOPIC, GROUP = "backed-up", "readers"
LOG_FILE_BYTES = 1 << 20
BODY = b"." * 2000
BEFORE = 1000  # messages, some two files of the log


@dataclass
class Load:
    """A producer and a consumer that go on while backups are made."""

    data: Path
    namesrv: str
    acknowledged: list[int] = field(default_factory=list)
    ends: threading.Event = field(default_factory=threading.Event)

    def send(self) -> None:
        with SyncProducer(self.namesrv) as producer:
            number = 0
            while not self.ends.is_set():
                producer.send(Message(TOPIC, b"%d " % number + BODY))
                self.acknowledged.append(number)
                number += 1

    def consume(self) -> None:
        def listener(_messages: object) -> ConsumeResult:
            return ConsumeResult.SUCCESS

        consumer = SyncPushConsumer(self.namesrv, group=GROUP, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET)
        consumer.subscribe(TOPIC)
        with consumer:
            self.ends.wait()


@contextmanager
def under_load(data: Path) -> Iterator[Load]:
    """Serve a new folder, and begin when some files of the log are full and the group has committed offsets."""
    properties = data / "brokers" / "broker-a" / "broker.properties"
    properties.parent.mkdir(parents=True, mode=0o700)
    lines = {
        **PROPERTIES,
        **SLOW_DISK,
        "mappedFileSizeCommitLog": str(LOG_FILE_BYTES),
        "flushConsumerOffsetInterval": "500",
    }
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    with RunningAppliance(data) as gantry:
        admin_of(gantry)
        with SyncAdminClient(gantry.namesrv) as admin:
            admin.topics.create(TopicConfig(TOPIC, read_queue_nums=4, write_queue_nums=4))
        load = Load(data, gantry.namesrv)
        threads = [threading.Thread(target=load.send), threading.Thread(target=load.consume)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(load.acknowledged) >= BEFORE and committed(data))
            yield load
        finally:
            load.ends.set()
            for thread in threads:
                thread.join()


def committed(data: Path) -> dict[str, int]:
    """What the group has committed by the file that the broker writes now and then."""
    path = data / "brokers" / "broker-a" / "store" / "config" / "consumerOffset.json"
    if not path.exists():
        return {}
    found: dict[str, int] = fastjson.loads(path.read_bytes())["offsetTable"].get(f"{TOPIC}@{GROUP}", {})
    return found


def check_restored(data: Path, acknowledged: set[int]) -> None:
    """Serve the folder: it has each of these messages, none twice, and the group's offsets are in its queues. Who could
    log in can do so now."""
    kept = committed(data)
    with RunningAppliance(data) as gantry:
        visitor = Visitor(gantry.url)
        visitor.log_in()
        assert visitor.get("/topics").status == 200
        with SyncAdminClient(gantry.namesrv) as admin:
            ends = {queue.queue_id: offset.max_offset for queue, offset in admin.topics.offsets(TOPIC).items()}
        seen: list[int] = []
        with SyncPullConsumer(gantry.namesrv, group="counting", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
            consumer.subscribe(TOPIC)
            while len(seen) < sum(ends.values()):
                seen.extend(int(message.body.split()[0]) for message in consumer.poll())
    assert acknowledged <= set(seen)
    assert len(seen) == len(set(seen)), "one message came back twice"
    assert kept, "the consumer had committed nothing: this proves nothing"
    assert all(0 <= offset <= ends[int(queue)] for queue, offset in kept.items())
