"""What a member of a group says of itself (request 307), read with care: any client may answer anything. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.cluster.group_values import GroupDetail
from gantrymq.message.model import MessageQueue

LISTED_MAX = 4096  # queues, topics, calls of one member


@dataclass(frozen=True, slots=True)
class HeldMessage:
    """A message that a listener call has in its hands. held_ms: for how long."""

    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    held_ms: int
    msg_id: str
    tries: int

    @property
    def place(self) -> str:
        """As the addresses of pages have it."""
        return f"{self.broker_name}.{self.queue_id}.{self.queue_offset}"


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """One member at work. Rates are messages a second over its last minute; None: it did not say.

    lag: messages that wait in the queues it holds. cached: messages it has fetched and not confirmed. busy: listener
    calls in progress, of concurrency. call_ms: the mean time of a listener call.
    """

    client_id: str
    has_answered: bool
    queues: int = 0
    lag: int = 0
    cached: int | None = None
    busy: int | None = None
    concurrency: int | None = None
    call_ms: float | None = None
    ok_rate: float | None = None
    failed_rate: float | None = None
    oldest: HeldMessage | None = None


def loads_of(detail: GroupDetail) -> list[MemberLoad]:
    """Every member, the one with the most waiting first."""
    loads = [_load(client.client_id, detail.running.get(client.client_id), detail) for client in detail.clients]
    return sorted(loads, key=lambda load: (-load.lag, load.client_id))


def _load(client_id: str, info: Mapping[str, Any] | None, detail: GroupDetail) -> MemberLoad:
    held = [queue for queue in detail.queues if queue.owner == client_id]
    lag = sum(queue.lag or 0 for queue in held)
    if not info:
        return MemberLoad(client_id, False, len(held), lag)
    statuses = _objects(_table(info, "statusTable").values())
    calls = _objects(info.get("workers") if isinstance(info.get("workers"), list) else ())
    queues = _table(info, "mqTable")
    ok_rate, failed_rate = (_sum(statuses, key) for key in ("consumeOKTPS", "consumeFailedTPS"))
    return MemberLoad(
        client_id=client_id,
        has_answered=True,
        queues=len([queue for queue in queues if isinstance(queue, MessageQueue)]),
        lag=lag,
        cached=int(_sum(_objects(queues.values()), "cachedMsgCount") or 0),
        busy=len(calls) if "workers" in info else None,
        concurrency=_concurrency(info),
        call_ms=_call_ms(statuses),
        ok_rate=ok_rate,
        failed_rate=failed_rate,
        oldest=_oldest(calls),
    )


def _oldest(calls: Iterable[Mapping[str, Any]]) -> HeldMessage | None:
    """The message that a call has held for longest."""
    found = [held for call in calls if (held := _held(call)) is not None]
    return max(found, key=lambda held: held.held_ms, default=None)


def _held(call: Mapping[str, Any]) -> HeldMessage | None:
    ids = call.get("msgIds")
    numbers = [_number(call, key) for key in ("queueId", "queueOffset", "heldMs", "reconsumeTimes")]
    whole = [int(number) for number in numbers if number is not None]
    if not isinstance(ids, list) or not ids or len(whole) < len(numbers):
        return None
    queue_id, queue_offset, held_ms, tries = whole
    return HeldMessage(
        str(call.get("topic", "")), str(call.get("brokerName", "")), queue_id, queue_offset, held_ms, str(ids[0]), tries
    )  # fmt: skip


def _call_ms(statuses: Iterable[Mapping[str, Any]]) -> float | None:
    """The mean over topics, by how much each was consumed; None where nothing was."""
    timed = [(_number(status, "consumeRT") or 0.0, _handled(status)) for status in statuses]
    handled = sum(weight for _, weight in timed)
    return sum(took * weight for took, weight in timed) / handled if handled else None


def _handled(status: Mapping[str, Any]) -> float:
    return (_number(status, "consumeOKTPS") or 0.0) + (_number(status, "consumeFailedTPS") or 0.0)


def _concurrency(info: Mapping[str, Any]) -> int | None:
    text = str(_table(info, "properties").get("PROP_THREADPOOL_CORE_SIZE", ""))
    return int(text) if text.isdecimal() and len(text) < 7 else None


def _table(info: Mapping[str, Any], key: str) -> Mapping[Any, Any]:
    found = info.get(key)
    return found if isinstance(found, dict) else {}


def _objects(values: Any) -> list[Mapping[str, Any]]:
    return [value for value, _ in zip(values, range(LISTED_MAX), strict=False) if isinstance(value, dict)]


def _sum(rows: Iterable[Mapping[str, Any]], key: str) -> float | None:
    known = [number for row in rows if (number := _number(row, key)) is not None]
    return sum(known) if known else None


def _number(row: Mapping[str, Any], key: str) -> float | None:
    """A number that is none below zero, nor infinite."""
    value = row.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value < 1e15 else None
