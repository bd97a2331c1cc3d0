"""A store with its timer and a clock that stands still, to be stopped, killed and started again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from appliance.broker.timer.recalls import BODY, recall_properties
from appliance.broker.timer.service import TimerService
from appliance.process.tasks import running
from gantrymq.message.ids import encode_host
from gantrymq.message.model import MessageExt
from gantrymq.message.properties import encode_properties
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.message.record import decode_records
from store.base.config import MessageStoreConfig
from store.base.results import PutMessageResult, PutMessageStatus, StoreMessage
from tests.harness import SMALL_STORE
from tests.store.conftest import opened
from tests.waiting import Clock

HOST = encode_host("127.0.0.1", 10911)
TIMER = "rmq_sys_wheel_timer"
HOUR_S = 3600
DAY_S = 24 * HOUR_S


class Broker:
    """A store and its timer, to be stopped, killed and started again."""

    def __init__(self, root: Path, clock: Clock, **settings: Any) -> None:
        self.root, self.clock = root, clock
        self.config = MessageStoreConfig(root=root, **{**SMALL_STORE, **settings})
        self.start()

    def start(self) -> None:
        self.store = opened(self.config, clock=self.clock)
        self.timer = TimerService(self.store, self.root / "timer", clock=self.clock)
        self.timer.load()

    def stop(self) -> None:
        self.timer.persist()
        self.store.close()

    def kill(self) -> None:
        self.store.abandon()

    def send(self, body: str, properties: dict[str, str], topic: str = "orders") -> PutMessageResult:
        text = encode_properties({"KEYS": "k", "TAGS": "t", "UNIQ_KEY": body, **properties})
        return self.store.put_message(
            StoreMessage(topic, 2, body.encode(), text.encode(), 7, 0, 1234, encode_host("10.1.2.3", 5), HOST, 1)
        )

    def send_in(self, seconds: float, body: str) -> PutMessageResult:
        result = self.send(body, {"TIMER_DELAY_MS": str(round(seconds * 1000))})
        assert result.status is PutMessageStatus.PUT_OK
        return result

    def recall(self, body: str, due_ms: int, topic: str = "orders") -> None:
        handle = RecallHandle(topic, "broker-a", due_ms, body)
        properties = recall_properties(handle, "PG", int(self.clock() * 1000))
        result = self.store.put_message(StoreMessage(TIMER, 0, BODY, properties, 0, 0, 1, HOST, HOST), delay=False)
        assert result.status is PutMessageStatus.PUT_OK
        self.timer.recall_stored(result.queue_offset)

    def arrived(self, topic: str = "orders") -> list[MessageExt]:
        messages: list[MessageExt] = []
        while True:
            found = self.store.get_message("g", topic, 2, len(messages), 32, None)
            if not found.buffers:
                return messages
            messages += decode_records(b"".join(found.buffers))

    def bodies(self) -> list[str]:
        return [message.body.decode() for message in self.arrived()]

    async def settle(self) -> float:
        """Do all there is to do now; returns seconds until more is due."""
        async with running(self.store):
            while True:
                await self.timer.bring_minutes(int(self.clock() * 1000))
                while self.timer.read_queue():
                    pass
                wait_s = self.timer.deliver_slice()
                is_all_there = self.timer.taken_ms > self.clock() * 1000
                if wait_s > 0 and is_all_there and not self.timer.read_queue():
                    return wait_s

    async def record(self, *, sync: bool = True) -> None:
        async with running(self.store):
            await self.timer.keep_record(sync=sync)
