"""Admin calls about how far groups have come: progress, and moving a group elsewhere with a look at it before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gantrymq.client.admin.calls import AdminCalls, ask_each
from gantrymq.client.admin.clients import ClientAdmin
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.groups import GroupAdmin
from gantrymq.client.admin.results import GroupProgress, QueueMove, QueueProgress
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.errors import ConfigError, ResponseError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import ConsumerOffsetTable, ConsumeStats, OffsetWrapper, offsets_of_group
from gantrymq.remoting.bodies import ResetOffsetBody
from gantrymq.remoting.codes import RequestCode, ResponseCode

TO_END = -1  # a reset's timestamp that means: skip everything that waits


class OffsetAdmin:
    """`admin.offsets`. Calls that end in _at speak to one broker, the others to all that matter."""

    def __init__(
        self, calls: AdminCalls, cluster: ClusterAdmin, topics: TopicAdmin, groups: GroupAdmin, clients: ClientAdmin
    ) -> None:
        self._calls = calls
        self._cluster = cluster
        self._topics = topics
        self._groups = groups
        self._clients = clients

    # -- of a queue ---------------------------------------------------------------------------------------------------

    async def max_at(self, address: str, topic: str, queue_id: int) -> int:
        """The offset the queue's next message will get."""
        return await self._calls.max_offset(address, topic, queue_id)

    async def min_at(self, address: str, topic: str, queue_id: int) -> int:
        """The smallest offset that can still be read."""
        return await self._calls.min_offset(address, topic, queue_id)

    async def search_at(self, address: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """The offset of the message nearest to that store time."""
        return await self._calls.search_offset(address, topic, queue_id, timestamp_ms)

    # -- of a group ---------------------------------------------------------------------------------------------------

    async def get_at(self, address: str, group: str, topic: str, queue_id: int) -> int | None:
        """The next offset the group will consume, None when it has none there yet."""
        return await self._calls.consumer_offset(address, group, topic, queue_id)

    async def set_at(self, address: str, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Say that the group consumed everything before `offset`."""
        await self._calls.update_consumer_offset(address, group, topic, queue_id, offset)

    async def stats_at(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """How far the group is in each queue of the topic, or of all its topics."""
        ext_fields = {"consumerGroup": group}
        if topic is not None:
            ext_fields["topic"] = topic
        return ConsumeStats.from_json((await self._calls.call(address, RequestCode.GET_CONSUME_STATS, ext_fields)).body)

    async def reset_at(
        self, address: str, group: str, topic: str, timestamp_ms: int, *, force: bool = True
    ) -> ResetOffsetBody:
        """Have the running consumers start again at a time (-1: the end). CONSUMER_NOT_ONLINE when none runs."""
        ext_fields = {
            "topic": topic,
            "group": group,
            "timestamp": str(timestamp_ms),
            "isForce": "true" if force else "false",
        }
        answer = await self._calls.call(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ext_fields)
        return ResetOffsetBody.from_json(answer.body)

    async def of_queues_at(self, address: str, group: str, topic: str, queue_ids: Sequence[int]) -> dict[int, int]:
        """The group's next offset in each of the queues; queues without one are left out."""
        offsets = await asyncio.gather(*(self.get_at(address, group, topic, queue_id) for queue_id in queue_ids))
        return {queue_id: offset for queue_id, offset in zip(queue_ids, offsets, strict=True) if offset is not None}

    async def all_at(self, address: str) -> dict[str, dict[int, int]]:
        """Every offset this broker keeps: "topic@group" to queue id to next offset."""
        answer = await self._calls.call(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        return ConsumerOffsetTable.from_json(answer.body).offset_table

    async def of_group_at(self, address: str, group: str) -> dict[str, dict[int, int]]:
        """The group's offsets at this broker: topic to queue id to next offset. Quicker than `all_at`."""
        answer = await self._calls.call(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        return offsets_of_group(answer.body, group)

    # -- progress -----------------------------------------------------------------------------------------------------

    async def progress(
        self, group: str, topic: str | None = None, *, with_clients: bool = False, cluster: str | None = None
    ) -> GroupProgress:
        """How far the group is in every queue of the topic, or of all its topics, at all brokers.

        A queue in which the group never wrote an offset has consumer_offset and lag None: brokers call that 0.
        with_clients asks the members which queues they hold.
        """
        masters = await self._cluster.masters(cluster)

        async def ask(name: str) -> tuple[ConsumeStats, dict[str, dict[int, int]]]:
            stats, offsets = await asyncio.gather(
                self.stats_at(masters[name], group, topic), self.of_group_at(masters[name], group)
            )
            return stats, offsets

        found, failures = await ask_each(masters, ask)
        if failures and not found:
            raise next(iter(failures.values()))
        progress = GroupProgress(failures=failures)
        for stats, offsets in found.values():
            progress.consume_tps += stats.consume_tps
            for queue, place in stats.offset_table.items():
                written = offsets.get(queue.topic, {})
                progress.queues.append(_queue_progress(queue, place, written.get(queue.queue_id)))
        progress.queues.sort(key=lambda each: each.queue)
        if with_clients:
            await self._name_clients(group, masters, progress)
        return progress

    async def _name_clients(self, group: str, masters: dict[str, str], progress: GroupProgress) -> None:
        """Say of each queue who holds it. Members that don't answer leave their queues unnamed."""
        members = await self._groups.members(group)
        asked = {
            one.client_id: masters[name]
            for name, connection in members.by_broker.items()
            for one in connection.connection_set
        }
        infos, _ = await ask_each(
            asked, lambda client_id: self._clients.running_info_at(asked[client_id], group, client_id)
        )
        holders = {
            queue: client_id
            for client_id, info in infos.items()
            for queue in (info.get("mqTable") or {})
            if isinstance(queue, MessageQueue)
        }
        for each in progress.queues:
            each.client_id = holders.get(each.queue)

    # -- moving -------------------------------------------------------------------------------------------------------

    async def plan_reset(
        self, group: str, topic: str, timestamp_ms: int = TO_END, *, offset: int | None = None
    ) -> list[QueueMove]:
        """Where a reset would bring the group: to a store time, to the end (-1), to the begin (0), or to `offset`.

        RouteNotFound when there is no such topic. Nothing is changed.
        """
        masters = await self._topics.masters(topic)
        tables, failures = await ask_each(masters, lambda name: self._topics.stats_at(masters[name], topic))
        for failure in failures.values():
            raise failure
        moves: list[QueueMove] = []
        for name, table in sorted(tables.items()):
            address = masters[name]
            written = (await self.of_group_at(address, group)).get(topic, {})
            for queue, at in sorted(table.offset_table.items()):
                if offset is not None:
                    target = min(max(offset, at.min_offset), at.max_offset)
                elif timestamp_ms == TO_END:
                    target = at.max_offset
                elif timestamp_ms <= 0:
                    target = at.min_offset
                else:
                    target = await self.search_at(address, topic, queue.queue_id, timestamp_ms)
                moves.append(QueueMove(queue, address, written.get(queue.queue_id), target))
        return moves

    async def reset(
        self, group: str, topic: str, timestamp_ms: int, moves: Sequence[QueueMove], *, by_offset: bool = False
    ) -> bool:
        """Do what plan_reset said; True when running consumers were notified, False when the offsets were written
        because no member runs. ConfigError for a reset `by_offset` while the group runs: its members would overwrite
        it."""
        is_online = (await self._groups.members(group)).keeps_offsets
        if is_online and by_offset:
            raise ConfigError(f"{group} is running: stop it first, or reset to a time, which running consumers follow")
        if is_online:
            for address in dict.fromkeys(move.address for move in moves):
                try:
                    await self.reset_at(address, group, topic, timestamp_ms)
                except ResponseError as exc:
                    if exc.code != ResponseCode.CONSUMER_NOT_ONLINE:
                        raise
                    await self.write(group, [move for move in moves if move.address == address])
        else:
            await self.write(group, moves)
        return is_online

    async def write(self, group: str, moves: Sequence[QueueMove]) -> None:
        """Write the offsets as a consumer would. Members that run overwrite them within seconds."""
        for move in moves:
            queue = move.queue
            await self.set_at(move.address, group, queue.topic, queue.queue_id, move.after)

    async def plan_clone(self, source: str, group: str, topic: str) -> list[QueueMove]:
        """Where the group would be with the offsets of `source` on the topic. Queues without one are left out."""
        masters = await self._topics.masters(topic)
        moves: list[QueueMove] = []
        for name, address in masters.items():
            table = await self.all_at(address)
            from_source, own = table.get(f"{topic}@{source}", {}), table.get(f"{topic}@{group}", {})
            moves += [
                QueueMove(MessageQueue(topic, name, queue_id), address, own.get(queue_id), offset)
                for queue_id, offset in sorted(from_source.items())
            ]
        return moves

    async def clone(self, source: str, group: str, topic: str) -> list[QueueMove]:
        """Bring a group that does not run to where `source` is; what was moved. ConfigError while it runs."""
        if (await self._groups.members(group)).keeps_offsets:
            raise ConfigError(f"{group} is running: stop it first, its members would overwrite the offsets")
        moves = await self.plan_clone(source, group, topic)
        await self.write(group, moves)
        return moves


def _queue_progress(queue: MessageQueue, place: OffsetWrapper, written: int | None) -> QueueProgress:
    lag_ms = getattr(place, "lag_ms", None)  # GantryMQ's brokers tell it, RocketMQ's don't
    return QueueProgress(
        queue,
        place.broker_offset,
        written,
        place.last_timestamp or None,
        lag_ms if written is not None and isinstance(lag_ms, int) and lag_ms >= 0 else None,
        done_ahead=place.done_ahead,
        in_flight=place.in_flight,
    )
