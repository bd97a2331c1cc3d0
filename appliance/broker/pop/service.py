"""The parts of POP, joined: what a broker has of it, and how that survives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from appliance.broker.access.access_control import outgoing_client
from appliance.broker.groups.consumer_offset import SEPARATOR
from appliance.broker.pop.hold import PopHold
from appliance.broker.pop.journal import Journal
from appliance.broker.pop.lease_book import LeaseBook, Record, still_true
from appliance.broker.pop.leases import Key
from appliance.broker.pop.modes import Mode, Modes
from appliance.broker.pop.moving import Moving
from appliance.broker.pop.redelivery import PopServiceParts, Redelivery
from appliance.broker.pop.taking import Taking
from appliance.errors import StartError
from appliance.process.cooperative import in_slices
from appliance.process.json_file import StateFileError
from appliance.settings.roles import BrokerConfig
from gantrymq.client.connection.routes import readable_queues
from gantrymq.errors import GantryError, MessageRejected
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import pop_retry_topic
from gantrymq.remoting.bodies import TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

FRESH_S = 30.0  # as long as RocketMQ's clients believe a route
ROUTES_MAX = 10_000
TIMEOUT_S = 3.0

MODE = "mode"  # a record of the journal: ["mode", topic, group, name, share]
MODE_QUEUE = -1  # in a key that stands for a mode
CONSUME_POP = "CONSUME_POP"  # what a member that pops may say of itself
GROUPS_TOLD = 20  # in the status: those with most
LEASES_A_STATE = 5000  # that one state tells a slave of
LOOK_S = 1.0
A_SLICE = 256  # offsets looked up before others have a turn


class PopService:
    """One broker's. clock: seconds since the epoch."""

    def __init__(self, parts: PopServiceParts, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._parts = parts
        self.journal = Journal(folder / "pop.journal", self._records)
        self.book = LeaseBook(parts.offsets, self.journal.append)
        self.journal.on_kept = self.book.kept
        self.hold = PopHold(parts.hold.topics)
        self.taking = Taking(parts, self.book, parts.offsets.query, parts.config.broker_name, clock=clock)
        self.redelivery = Redelivery(parts, self.book, self.hold.wake, clock=clock)
        self.moving = Moving(parts, self.book, self.redelivery)
        self.modes = self.moving.modes = Modes(self._has_leases, self.moving.has_waiting, self.moving.leave_soon)
        self.routes = TopicRoutes(parts.config, lambda: parts.outer_api.addresses)

    def load(self) -> None:
        """Read the journal, once offsets and store are there. Blocking. StartError."""
        self._replay(list(still_true(self.journal.read())))
        self.book.cut(self._parts.store.max_offset)
        for key in self.book.queues:
            self.modes.popping.setdefault((self._own_topic(key), key.group), time.monotonic())
        for topic, group in self._with_retries():
            if self.modes.get(topic, group) is None:
                self.modes.popping.setdefault((topic, group), time.monotonic())
        self.journal.open()

    def _replay(self, records: list[Record]) -> None:
        offsets, end_of = self._parts.offsets, self._parts.store.max_offset
        gone = [Key(*record[1:]) for record in records if len(record) == 4 and record[0] == "gone"]
        stored = [(key, offsets.query(*key)) for key in gone]
        for record in records:
            if record and record[0] == MODE:
                self._apply_mode(record)
            elif not self.journal.is_damaged:
                self._apply(record)
                if record[0] == "gone":  # a topic of the same name begins anew
                    offsets.forget(*record[1:])
        for key, offset in stored:  # who pulled since is in the file alone; at a queue's end it may be of before, cut
            if offsets.query(*key) < 0 <= offset < end_of(*key[1:]):
                offsets.commit(*key, offset)

    def _with_retries(self) -> Iterator[tuple[str, str]]:
        """Yield topics and groups whose pops have stored something again, which no pull reads."""
        for key in self._parts.offsets.table:
            retry, _separator, group = key.partition(SEPARATOR)
            prefix = pop_retry_topic(group, "")
            if retry.startswith(prefix) and self.moving.has_waiting(retry.removeprefix(prefix), group):
                yield retry.removeprefix(prefix), group

    def _apply(self, record: Record) -> None:
        try:
            self.book.apply(record)
        except MessageRejected as exc:
            facts = {"event": "pop_lease_not_kept", "record": record[:4], "why": str(exc)}
            logger.error("the group's offset can't be kept: what it has out is delivered again", extra=facts)
        except (LookupError, TypeError, ValueError) as exc:
            raise StartError(
                f"{self.journal.path} has a record that this version does not know ({exc!r}): move the file away to "
                "deliver again what was leased"
            ) from exc

    def _apply_mode(self, record: Record) -> None:
        _kind, topic, group, name, share = record
        if name:
            self.modes.put(topic, group, Mode(name, share))
        else:
            self.modes.table.pop((topic, group), None)

    def set_mode(self, topic: str, group: str, mode: Mode | None) -> None:
        """Keep a mode, None for no longer one. BrokerError."""
        record = [MODE, topic, group, mode.name if mode else "", mode.share if mode else 0]
        self._apply_mode(record)
        self.book.note(Key(group, topic, MODE_QUEUE), record)

    def note_pop(self, topic: str, group: str) -> None:
        """A pop came. BrokerError when the group pulls the topic."""
        self.modes.note_pop(topic, group, lambda: self._is_pulled(topic, group))

    def _is_pulled(self, topic: str, group: str) -> bool:
        info = self._parts.consumers.get(group)
        if info is not None and topic in info.subscriptions and info.consume_type != CONSUME_POP:
            return True
        config = self._parts.topics.configs.get(topic)
        return config is not None and self._parts.hold.is_waiting(group, topic, config.read_queue_nums)

    def _has_leases(self, topic: str, group: str) -> bool:
        return bool(self.book.of(group, topic, pop_retry_topic(group, topic)))

    def _own_topic(self, key: Key) -> str:
        return key.topic.removeprefix(pop_retry_topic(key.group, ""))

    def figures(self) -> dict[str, str]:
        """Rows of the broker's status (28). Cheap: one lease a queue is looked at, since later ones went out later."""
        book = self.book
        oldest_ms = min((next(iter(queue.leases.values())).pop_ms for queue in book.queues.values()), default=None)
        return {
            "popMessagesOut": str(book.count),
            "popMessagesOutByGroup": _most(book.by_group),
            "popOldestOutMs": "0" if oldest_ms is None else str(max(self.taking.now_ms() - oldest_ms, 0)),
            "popRedelivered": str(book.redelivered.total() + book.redelivered_to_deleted),  # since the start
            "popRedeliveredByGroup": _most(book.redelivered),
            "popDeadLetters": str(self.redelivery.dead),
            "popWaiting": str(self.hold.count),
        }

    async def run(self) -> None:
        """Leave groups to the file of offsets that pull by now: their commits, many a second, are not on record."""
        while True:
            await asyncio.sleep(LOOK_S)
            places = in_slices(self.book.emptied(), A_SLICE)
            moved = [place async for place in places if self.book.has_moved(*place)]
            if moved:
                with contextlib.suppress(StateFileError):  # it is logged, and written again later
                    await self._parts.offsets.saved()
                    for place in moved:
                        self.book.leave(*place)

    # -- for the journal and for slaves -------------------------------------------------------------------------------

    def _records(self) -> Iterator[Record]:
        for (topic, group), mode in self.modes.table.items():
            yield [MODE, topic, group, mode.name, mode.share]
        yield from self.book.records()

    def watch(self) -> set[Key]:
        """What a new slave is to be told: all there is, and what changes from now on."""
        watcher = self.book.watch()
        watcher.update(Key(group, topic, MODE_QUEUE) for topic, group in self.modes.table)
        return watcher

    def take_records(self, untold: set[Key]) -> list[Record]:
        """Some of what a slave has not been told yet; they leave `untold`."""
        records: list[Record] = []
        left = LEASES_A_STATE
        while untold and left > 0:
            key = untold.pop()
            record = self._mode_record(key) if key.queue_id == MODE_QUEUE else self.book.snapshot(key)
            left -= 1 + (len(record[-1]) if record[0] == "all" else 0)
            records.append(record)
        return records

    def _mode_record(self, key: Key) -> Record:
        mode = self.modes.get(key.topic, key.group)
        return [MODE, key.topic, key.group, mode.name if mode else "", mode.share if mode else 0]

    def put_records(self, records: list[Record]) -> None:
        """A slave: take over what its master tells. LookupError, TypeError or ValueError for what is no record."""
        for record in records:
            if record[0] == MODE:
                self._apply_mode(record)
                self.journal.append(record)
            else:
                self.book.do(record)


def _most(counts: Counter[str]) -> str:
    """Of the groups with most."""
    return " ".join(f"{group}:{count}" for group, count in counts.most_common(GROUPS_TOLD)) or "none"


class TopicRoutes:
    """Where a topic lives, all brokers of it: an assignment is about all. addresses: of the name servers, now."""

    def __init__(self, config: BrokerConfig, addresses: Callable[[], Sequence[str]]) -> None:
        self._addresses = addresses
        self._client = outgoing_client(config)
        self._known: dict[str, tuple[float, tuple[MessageQueue, ...]]] = {}

    async def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """All queues that consumers read, sorted; those known last while no name server answers. GantryError."""
        known = self._known.get(topic)
        if known is not None and time.monotonic() - known[0] < FRESH_S:
            return known[1]
        error: GantryError | None = None
        for address in self._addresses():
            request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            try:
                answer = await self._client.invoke(address, request, timeout_s=TIMEOUT_S)
                if answer.code != ResponseCode.SUCCESS:
                    return ()
                queues = tuple(sorted(readable_queues(topic, TopicRouteData.from_json(answer.body))))
            except GantryError as exc:
                error = exc
                continue
            if len(self._known) >= ROUTES_MAX:
                self._known.clear()
            self._known[topic] = time.monotonic(), queues
            return queues
        if known is not None:
            return known[1]
        if error is not None:
            raise error
        return ()

    async def run(self) -> None:
        """Close the connections at the end."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._client.close()
