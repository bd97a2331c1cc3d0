"""Namespaces: a cluster shared by several systems, each with its own topics and groups (Java: NamespaceUtil).

The brokers know the topic "orders" of namespace "shop" as "shop%orders", its group "readers" as "shop%readers", and
that one's retry topic as "%RETRY%shop%readers". RocketMQ's own topics and groups belong to no namespace. Clients use
the plain names inside and the whole ones on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable

from gantrymq.errors import MessageRejected, WrongType
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.topics import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    SYSTEM_GROUP_PREFIX,
    SYSTEM_TOPIC_PREFIX,
    SYSTEM_TOPICS,
    check_group,
)

SEPARATOR = "%"


class Namespace:
    """One namespace, or none when the name is empty: then names stay as they are.

    outside: further topics and groups that belong to none; `exclude` adds one.
    """

    __slots__ = ("_outside", "_start", "name")

    def __init__(self, name: str = "", *, outside: Iterable[str] = ()) -> None:
        self.name: str = name
        self._start = name + SEPARATOR if name else ""
        self._outside = {*SYSTEM_TOPICS, *outside}

    def __bool__(self) -> bool:
        return bool(self._start)

    def wrap(self, plain: str) -> str:
        """The whole name of a topic or group."""
        if not self._start or not plain or self._is_outside(plain):
            return plain
        prefix, rest = _parts(plain)
        return plain if rest.startswith(self._start) else f"{prefix}{self._start}{rest}"

    def unwrap(self, whole: str) -> str:
        """The plain name; that of another namespace stays as it is."""
        if not self._start:
            return whole
        prefix, rest = _parts(whole)
        return prefix + rest[len(self._start) :] if rest.startswith(self._start) else whole

    def exclude(self, name: str) -> None:
        """A topic or group that belongs to no namespace."""
        self._outside.add(name)

    def wrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """The queue with its topic's whole name."""
        return queue._replace(topic=self.wrap(queue.topic)) if self._start else queue

    def unwrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """The queue with its topic's plain name."""
        return queue._replace(topic=self.unwrap(queue.topic)) if self._start else queue

    def unwrap_topics(self, messages: Iterable[MessageExt]) -> None:
        """Give received messages the plain names of their topics."""
        if self._start:
            for message in messages:
                message.topic = self.unwrap(message.topic)

    def _is_outside(self, name: str) -> bool:
        return name in self._outside or name.startswith((SYSTEM_TOPIC_PREFIX, SYSTEM_GROUP_PREFIX))


NO_NAMESPACE = Namespace()


def check_namespace(name: str) -> None:
    """WrongType or MessageRejected unless it is empty or can be a namespace."""
    if not isinstance(name, str):
        raise WrongType(f"namespace: a text is wanted, not {name!r:.60}")
    if name:
        check_group(name)
        if SEPARATOR in name:
            raise MessageRejected(f"namespace={name!r}: {SEPARATOR} ends a namespace, so none is inside")


def _parts(name: str) -> tuple[str, str]:
    """What stands before the namespace, and the rest."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name
