"""Where messages are: what the readers ask of a store folder and of a cluster alike."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from gantrymq.contrib.arrow.record_blocks import RecordBlock
from gantrymq.contrib.spark.options import ReadOptions, Selection
from gantrymq.contrib.spark.ranges import Bounds, Lost, Partition, Queue, QueueRange
from gantrymq.errors import ConfigError
from gantrymq.message.topics import REPLY_TOPIC_POSTFIX, topic_kind


class Found(NamedTuple):
    """Some records of a queue's range; or, without a block, what of it is lost."""

    block: RecordBlock | None
    lost: Lost | None
    broker_name: str | None


class Place(Protocol):
    """A store folder or a cluster. Made by the planner for each question, and by each task."""

    def queues(self, *, must_exist: bool) -> list[Queue]:
        """The queues that the options choose; must_exist: a named topic that is not there is an error."""

    def bounds(self, queues: Iterable[Queue]) -> dict[Queue, Bounds]:
        """Their first offset and their end, now. What is not there any more is missing."""

    def at_time(self, times_ms: Mapping[Queue, int]) -> dict[Queue, int]:
        """Of each queue the offset of its first message stored at that time or later, else its end."""

    def partitions(self, ranges: Sequence[QueueRange], partitions_min: int) -> list[Partition]:
        """The ranges, cut for tasks."""

    def read(self, partition: Partition, *, checks_bodies: bool) -> Iterator[Found]:
        """The messages of a partition. Each offset of its ranges is in a block, or lost. checks_bodies: a message whose
        body does not match its checksum is lost."""

    def close(self) -> None:
        """Free what it holds."""


def place_of(options: ReadOptions) -> Place:
    """The place that the options name."""
    if options.path is not None:
        from gantrymq.contrib.spark.store_place import StorePlace

        return StorePlace(options)
    from gantrymq.contrib.spark.cluster_place import ClusterPlace  # needs the client, and orjson

    return ClusterPlace(options)


def is_internal(topic: str, own_names: Container[str] = ()) -> bool:
    """Whether a topic is read only when it is named, or internal ones are wanted. own_names: clusters and brokers."""
    return topic_kind(topic, own_names) != "normal" or topic.endswith(f"_{REPLY_TOPIC_POSTFIX}")


def chosen(queues: Iterable[Queue], selection: Selection) -> list[Queue]:
    """The queues that option `assign` leaves of the chosen topics'. ConfigError when one that it names is missing."""
    found = sorted(queues)
    if selection.assigned is None:
        return found
    return sorted(
        by_label(found, topic, label, "assign") for topic, labels in selection.assigned.items() for label in labels
    )


def by_label(queues: Iterable[Queue], topic: str, label: str, option: str) -> Queue:
    """The queue that a user calls "broker-a:3", or "3" where one broker has the topic. ConfigError."""
    of_topic = [queue for queue in queues if queue.topic == topic]
    fitting = [queue for queue in of_topic if label in (queue.label, str(queue.queue_id))]
    exact = [queue for queue in fitting if queue.label == label]
    if len(exact or fitting) != 1:
        there = ", ".join(queue.label for queue in of_topic[:20]) or "none"
        problem = "several brokers have it" if fitting else "there is no such queue"
        raise ConfigError(f"option {option}: topic {topic}, queue {label}: {problem}; queues are {there}")
    return (exact or fitting)[0]
