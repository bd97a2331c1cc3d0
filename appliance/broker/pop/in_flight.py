"""What a group has in flight, for people: the oldest messages, who has them, until when, and how often they came."""

from __future__ import annotations

import contextlib
import heapq
import itertools

from appliance.broker.pop.leases import Key, Lease
from appliance.broker.pop.modes import POP
from appliance.broker.pop.service import PopService
from gantrymq.errors import RecordError
from gantrymq.message.properties import UNIQ_KEY, find_property
from gantrymq.message.record import split_record
from gantrymq.remoting.pop_bodies import GroupLeases, LeasedMessage
from store.base.errors import NotReadableNow

SHOWN_MAX = 500


def in_flight(pop: PopService, group: str, count_max: int) -> GroupLeases:
    """The group's modes, how much it has in flight, and the oldest of that."""
    modes = {topic: mode.name for (topic, name), mode in pop.modes.table.items() if name == group}
    popping = [topic for topic, name in list(pop.modes.popping) if name == group and pop.modes.pops(topic, name)]
    leases = (
        (lease.pop_ms, key, offset, lease)
        for key, queue in pop.book.queues.items()
        if key.group == group
        for offset, lease in itertools.islice(queue.leases.items(), count_max)
    )
    oldest = heapq.nsmallest(count_max, leases, key=lambda each: each[:3])
    shown = [_described(pop, key, offset, lease) for _, key, offset, lease in oldest]
    return GroupLeases(dict.fromkeys(popping, POP) | modes, pop.book.by_group[group], shown)


def _described(pop: PopService, key: Key, offset: int, lease: Lease) -> LeasedMessage:
    """One message; what the log no longer has, has no id."""
    message_id, before, record = "", 0, None
    with contextlib.suppress(NotReadableNow):
        record = pop.taking.record_at(key, offset)
    if record is not None:
        try:
            fields = split_record(record)
            before = fields.reconsume_times
            message_id = (find_property(fields.properties, UNIQ_KEY.encode()) or b"").decode(errors="replace")
        except RecordError:  # damaged: reading it says so, elsewhere
            message_id = ""
    queue = pop.book.queues[key]
    return LeasedMessage(
        key.topic, key.queue_id, offset, message_id, lease.client, lease.pop_ms, lease.due_ms,
        before + lease.times + 1, queue.is_ordered,
    )  # fmt: skip
