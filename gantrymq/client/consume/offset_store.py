"""How far a group has come: kept at the brokers when its members share the messages, in a local file when each gets
all.

Both stores are tables from queue to next offset. `update` changes memory only; `persist` writes what changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from gantrymq.client.connection.broker_calls import BrokerCalls
from gantrymq.client.connection.routes import Routes
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.consume.options import ConsumerOptions
from gantrymq.client.consume.subscription import ConsumeFrom, MessageModel
from gantrymq.errors import BodyError, GantryError
from gantrymq.home import home_folder
from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace
from gantrymq.message.topics import is_retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import ResetOffsetBody
from gantrymq.remoting.outages import Outages

if TYPE_CHECKING:
    from pathlib import Path  # loaded where it is used: it takes longer to import than most of the SDK

logger: logging.Logger = logging.getLogger(__name__)

WRITE = "writing offsets"


class OffsetStore(Protocol):
    """A group's next offsets by queue."""

    async def read(self, queue: MessageQueue) -> int | None:
        """The durable offset, None when there is none. Raises when it can't be known now."""

    def known(self, queue: MessageQueue) -> int | None:
        """The offset as of the last update."""

    def update(self, queue: MessageQueue, offset: int) -> None:
        """Note that everything before `offset` is finished."""

    def replace(self, queue: MessageQueue, offset: int) -> None:
        """Note the offset that the application or an operator chose: it may be a smaller one."""

    def doubt(self, queues: Iterable[MessageQueue]) -> None:
        """The broker of these queues may have forgotten their newest offsets, or another member may have written
        others: the next `persist` writes only over smaller ones."""

    def is_doubted(self, queue: MessageQueue) -> bool:
        """Whether the queue is one of those."""

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Make the updates of these queues durable; what can't be written now is written next time."""

    def forget(self, queue: MessageQueue) -> None:
        """Another member of the group has the queue now."""


def offset_store(session: ClientSession, options: ConsumerOptions) -> OffsetStore:
    """The brokers when members share the messages; a file of this host, where Java has its own, when each gets all."""
    if options.model is MessageModel.CLUSTERING:
        return BrokerOffsets(session.calls, session.routes, session.outages, options.group)
    folder = options.offsets_folder or home_folder() / ".rocketmq_offsets"
    namespace = session.namespace
    return FileOffsets(folder / session.client_id / namespace.wrap(options.group) / "offsets.json", namespace)


class BrokerOffsets:
    """Offsets at the broker of each queue.

    Apache's broker makes a group's table of a topic with its first offset, and loses one of two that arrive at once
    then: the first offset of a topic is written alone.
    """

    def __init__(self, calls: BrokerCalls, routes: Routes, outages: Outages, group: str) -> None:
        self._calls = calls
        self._routes = routes
        self._outages = outages
        self._group = group
        self._offsets: dict[MessageQueue, int] = {}
        self._durable: dict[MessageQueue, int] = {}
        self._doubted: dict[MessageQueue, object] = {}  # each with its newest doubt
        self._begun: set[tuple[str, str]] = set()  # topics, and brokers that have a table of them

    async def read(self, queue: MessageQueue) -> int | None:
        address = self._address(queue)
        offset = await self._calls.consumer_offset(address, self._group, queue.topic, queue.queue_id)
        if offset is not None:
            self._durable[queue] = offset
        return offset

    def known(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int) -> None:
        self._offsets[queue] = offset

    def replace(self, queue: MessageQueue, offset: int) -> None:
        self._doubted.pop(queue, None)
        self._offsets[queue] = offset

    def doubt(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            self._doubted[queue] = object()
            self._begun.discard((queue.topic, queue.broker_name))

    def is_doubted(self, queue: MessageQueue) -> bool:
        return queue in self._doubted

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        known, doubted = self._offsets, self._doubted
        changed = [
            queue
            for queue in queues
            if queue in known and (queue in doubted or known[queue] != self._durable.get(queue))
        ]
        firsts = {(queue.topic, queue.broker_name): queue for queue in changed}
        alone = [queue for place, queue in firsts.items() if place not in self._begun]
        await self._write_each(alone)
        await self._write_each([queue for queue in changed if queue not in alone])

    async def _write_each(self, queues: Iterable[MessageQueue]) -> None:
        each = list(queues)
        outcomes = await asyncio.gather(*map(self._write, each), return_exceptions=True)
        for queue, outcome in zip(each, outcomes, strict=True):
            if isinstance(outcome, GantryError):
                self._outages.failed(WRITE, queue.broker_name, outcome, member=f"{queue.topic}/{queue.queue_id}")
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._outages.worked(WRITE, queue.broker_name, member=f"{queue.topic}/{queue.queue_id}")

    async def _write(self, queue: MessageQueue) -> None:
        if (offset := self._offsets.get(queue)) is None:
            return  # given up while others were written
        address = self._address(queue)
        if queue in self._doubted:
            # Apache's broker only writes; GantryMQ's compares once more as it writes, should another member do so.
            theirs = await self._calls.consumer_offset(address, self._group, queue.topic, queue.queue_id)
            if theirs is not None and theirs > offset:
                return  # another member is ahead: this offset would take the group back
            if queue not in self._offsets:
                return  # given up meanwhile: another member writes its offsets now
            offset = self._offsets[queue]
        doubt = self._doubted.get(queue)  # None, too, where the application chose an offset meanwhile
        there = await self._calls.update_consumer_offset(
            address, self._group, queue.topic, queue.queue_id, offset, only_forward=doubt is not None
        )
        if there > offset:
            return
        if self._doubted.get(queue) is doubt:  # else it is doubted anew
            self._doubted.pop(queue, None)
        self._durable[queue] = offset
        self._begun.add((queue.topic, queue.broker_name))

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)
        self._durable.pop(queue, None)
        self._doubted.pop(queue, None)
        self._outages.given_up(WRITE, queue.broker_name, member=f"{queue.topic}/{queue.queue_id}")

    def _address(self, queue: MessageQueue) -> str:
        return self._routes.require_address_to_read(queue.broker_name)[0]


class FileOffsets:
    """Offsets in a file of this host, in the format of RocketMQ's Java client, replaced atomically."""

    def __init__(self, path: Path, namespace: Namespace = NO_NAMESPACE) -> None:
        self._path = path
        self._namespace = namespace
        self._offsets: dict[MessageQueue, int] | None = None
        self._is_changed = False

    async def read(self, queue: MessageQueue) -> int | None:
        if self._offsets is None:
            self._offsets = await asyncio.to_thread(self._load)
        return self._offsets.get(queue)

    def known(self, queue: MessageQueue) -> int | None:
        return (self._offsets or {}).get(queue)

    def update(self, queue: MessageQueue, offset: int) -> None:
        if self._offsets is None:
            self._offsets = self._load()
        self._is_changed = self._is_changed or self._offsets.get(queue) != offset
        self._offsets[queue] = offset

    def replace(self, queue: MessageQueue, offset: int) -> None:
        self.update(queue, offset)

    def doubt(self, queues: Iterable[MessageQueue]) -> None:
        """No other client writes the file."""

    def is_doubted(self, queue: MessageQueue) -> bool:
        return False

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        if self._is_changed and self._offsets is not None:
            self._is_changed = False
            whole = {self._namespace.wrap_queue(queue): offset for queue, offset in self._offsets.items()}
            text = ResetOffsetBody(whole).to_json()  # the same shape: offsetTable keyed by queue
            try:
                await self._save_in_thread(text)
            except OSError as exc:
                self._is_changed = True
                logger.warning("offsets not written: %s", exc, extra={"event": "offset_not_written", "error": str(exc)})

    def forget(self, queue: MessageQueue) -> None:
        """A file offset stays: the queue comes back to this very consumer."""

    def _load(self) -> dict[MessageQueue, int]:
        """What the file says, or else the one before it; none of a new consumer. GantryError when a file is there and
        can't be read now: to begin anew would skip what came since, and write over it."""
        unread: OSError | None = None
        for path in (self._path, self._path.with_suffix(".json.bak")):
            try:
                table = ResetOffsetBody.from_dict(fastjson.loads(path.read_bytes())).offset_table
                return {self._namespace.unwrap_queue(queue): offset for queue, offset in table.items()}
            except FileNotFoundError:
                continue
            except (BodyError, OSError) as exc:
                unread = exc if isinstance(exc, OSError) else unread
                logger.error(
                    "offset file unreadable (path=%s): %s",
                    path,
                    exc,
                    extra={"event": "offset_file_unreadable", "path": str(path), "error": str(exc)},
                )
        if unread is not None:
            raise GantryError(f"offsets can't be read: {unread}") from unread
        return {}

    async def _save_in_thread(self, text: bytes) -> None:
        try:
            saving = asyncio.get_running_loop().run_in_executor(None, self._save, text)
        except RuntimeError:  # the interpreter ends and has no threads any more
            self._save(text)
        else:
            await saving

    def _save(self, text: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".json.tmp")
        with fresh.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists():
            self._path.replace(self._path.with_suffix(".json.bak"))
        fresh.replace(self._path)


async def start_offset(
    session: ClientSession, offsets: OffsetStore, queue: MessageQueue, options: ConsumerOptions
) -> int:
    """The offset of the first message to consume: the group's own, else what `consume_from` says. Raises when
    neither offset store nor broker can say it now."""
    offset = await offsets.read(queue)
    if offset is not None:
        return offset
    address, _ = session.routes.require_address_to_read(queue.broker_name)
    calls = session.calls
    if options.consume_from is ConsumeFrom.FIRST_OFFSET or is_retry_topic(queue.topic):
        return await calls.min_offset(address, queue.topic, queue.queue_id)  # failed messages are never skipped
    if options.consume_from is ConsumeFrom.TIMESTAMP:
        assert options.consume_from_ms is not None
        return await calls.search_offset(address, queue.topic, queue.queue_id, options.consume_from_ms)
    return await calls.max_offset(address, queue.topic, queue.queue_id)
