"""offsets, for threads.

Written from gantrymq.client.admin.offsets, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from collections.abc import Sequence

from gantrymq.client.admin.offsets import TO_END, OffsetAdmin
from gantrymq.client.admin.results import GroupProgress, QueueMove
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.remoting.admin_bodies import ConsumeStats
from gantrymq.remoting.bodies import ResetOffsetBody


class SyncOffsetAdmin(BlockingPart[OffsetAdmin]):
    """`admin.offsets`. Calls that end in _at speak to one broker, the others to all that matter."""

    def max_at(self, address: str, topic: str, queue_id: int) -> int:
        """The offset the queue's next message will get."""
        return self._run(self._part().max_at(address, topic, queue_id))

    def min_at(self, address: str, topic: str, queue_id: int) -> int:
        """The smallest offset that can still be read."""
        return self._run(self._part().min_at(address, topic, queue_id))

    def search_at(self, address: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """The offset of the message nearest to that store time."""
        return self._run(self._part().search_at(address, topic, queue_id, timestamp_ms))

    def get_at(self, address: str, group: str, topic: str, queue_id: int) -> int | None:
        """The next offset the group will consume, None when it has none there yet."""
        return self._run(self._part().get_at(address, group, topic, queue_id))

    def set_at(self, address: str, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Say that the group consumed everything before `offset`."""
        self._run(self._part().set_at(address, group, topic, queue_id, offset))

    def stats_at(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """How far the group is in each queue of the topic, or of all its topics."""
        return self._run(self._part().stats_at(address, group, topic))

    def reset_at(
        self, address: str, group: str, topic: str, timestamp_ms: int, *, force: bool = True
    ) -> ResetOffsetBody:
        """Have the running consumers start again at a time (-1: the end). CONSUMER_NOT_ONLINE when none runs."""
        return self._run(self._part().reset_at(address, group, topic, timestamp_ms, force=force))

    def of_queues_at(self, address: str, group: str, topic: str, queue_ids: Sequence[int]) -> dict[int, int]:
        """The group's next offset in each of the queues; queues without one are left out."""
        return self._run(self._part().of_queues_at(address, group, topic, queue_ids))

    def all_at(self, address: str) -> dict[str, dict[int, int]]:
        """Every offset this broker keeps: "topic@group" to queue id to next offset."""
        return self._run(self._part().all_at(address))

    def of_group_at(self, address: str, group: str) -> dict[str, dict[int, int]]:
        """The group's offsets at this broker: topic to queue id to next offset. Quicker than `all_at`."""
        return self._run(self._part().of_group_at(address, group))

    def progress(
        self, group: str, topic: str | None = None, *, with_clients: bool = False, cluster: str | None = None
    ) -> GroupProgress:
        """How far the group is in every queue of the topic, or of all its topics, at all brokers.

        A queue in which the group never wrote an offset has consumer_offset and lag None: brokers call that 0.
        with_clients asks the members which queues they hold.
        """
        return self._run(self._part().progress(group, topic, with_clients=with_clients, cluster=cluster))

    def plan_reset(
        self, group: str, topic: str, timestamp_ms: int = TO_END, *, offset: int | None = None
    ) -> list[QueueMove]:
        """Where a reset would bring the group: to a store time, to the end (-1), to the begin (0), or to `offset`.

        RouteNotFound when there is no such topic. Nothing is changed.
        """
        return self._run(self._part().plan_reset(group, topic, timestamp_ms, offset=offset))

    def reset(
        self, group: str, topic: str, timestamp_ms: int, moves: Sequence[QueueMove], *, by_offset: bool = False
    ) -> bool:
        """Do what plan_reset said; True when running consumers were notified, False when the offsets were written
        because no member runs. ConfigError for a reset `by_offset` while the group runs: its members would overwrite
        it."""
        return self._run(self._part().reset(group, topic, timestamp_ms, moves, by_offset=by_offset))

    def write(self, group: str, moves: Sequence[QueueMove]) -> None:
        """Write the offsets as a consumer would. Members that run overwrite them within seconds."""
        self._run(self._part().write(group, moves))

    def plan_clone(self, source: str, group: str, topic: str) -> list[QueueMove]:
        """Where the group would be with the offsets of `source` on the topic. Queues without one are left out."""
        return self._run(self._part().plan_clone(source, group, topic))

    def clone(self, source: str, group: str, topic: str) -> list[QueueMove]:
        """Bring a group that does not run to where `source` is; what was moved. ConfigError while it runs."""
        return self._run(self._part().clone(source, group, topic))
