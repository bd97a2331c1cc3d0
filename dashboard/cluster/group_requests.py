"""The gateway's consumer groups: list, one whole, moving one elsewhere."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from dashboard.cluster.calls import (
    CALL_ERRORS,
    CALLS_AT_ONCE,
    ClusterCalls,
    KeptTables,
    LastAnswers,
    LastAnswersOf,
    refusals_of,
)
from dashboard.cluster.errors import BrokerUnreachable, GroupNotFound, MemberNotFound, Refused, TopicNotFound, explain
from dashboard.cluster.group_values import (
    GroupDetail,
    GroupMember,
    GroupPlace,
    GroupSettings,
    GroupSummary,
    InFlight,
    QueuePlace,
    ResetPlan,
    known_lag_ms,
    worst_lag_ms,
)
from dashboard.cluster.values import BrokerRef, PartialFailure, TopicDetail
from dashboard.language.sentences import gettext, joined
from dashboard.limits.names import current, unlimited
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.groups import CONSUME_POP, broadcasts
from gantrymq.client.admin.offsets import TO_END
from gantrymq.client.admin.results import QueueMove
from gantrymq.errors import ConfigError, ResponseError, RouteNotFound
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import (
    ConsumerConnection,
    ConsumeStats,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.pop_bodies import GroupLeases

GROUPS_SHOWN_MAX = 100
LEASES_SHOWN_MAX = 100  # messages in flight, the oldest
OWNERS_ASKED_MAX = 16  # members asked which queues they hold
OWNER_TIMEOUT_S = 1.0
STACKS_TIMEOUT_S = 12.0  # the broker waits ten seconds for the client
STACKS_CHARS_MAX = 1 << 20
RESET_TIMEOUT_S = 15.0  # running consumers are told one by one

Settings = dict[str, list[GroupSettings]]  # of each group, by broker
Place = tuple[ConsumeStats, dict[str, dict[int, int]]]


class GroupCalls:
    """`gateway.groups`: what pages and REST ask about consumer groups."""

    def __init__(self, calls: ClusterCalls) -> None:
        self._calls = calls
        self._asked = KeptTables(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, _group_table)
        self._told = LastAnswers(self._asked.ask)
        self._told_places = LastAnswersOf(_place)
        self._told_members = LastAnswersOf(_members)
        self._told_leases = LastAnswersOf(_leases)
        self._settings: Settings = {}
        self._settings_of: list[dict[str, GroupSettings]] = []  # what they were made of

    async def settings(self, *, patiently: bool = False) -> tuple[Settings, list[PartialFailure]]:
        """Every group's settings by broker, sorted by name; of a silent broker those that it told last.

        They are shared by all who ask, so not to be changed.
        """
        cluster = await self._calls.cluster()
        told, failures = await self._told.ask(self._calls, cluster.brokers, patiently=patiently)
        self._asked.keep_only(cluster.brokers)
        tables = [one.answer for _, one in told]
        if len(tables) != len(self._settings_of) or not all(map(operator.is_, tables, self._settings_of)):
            found: Settings = {}
            for table in tables:
                for name, settings in table.items():
                    found.setdefault(name, []).append(settings)
            self._settings, self._settings_of = dict(sorted(found.items())), tables
        return self._settings, failures

    def forget_settings(self) -> None:
        """A group was changed, or may have been: the next look waits for what brokers have now."""
        self._told.changed()
        self._told_places.changed()
        self._told_members.changed()
        self._told_leases.changed()

    async def summaries(self, names: Sequence[str], settings: dict[str, list[GroupSettings]]) -> list[GroupSummary]:
        """The groups with their metrics, in the order given."""
        cluster = await self._calls.cluster()
        return await self._summaries(names, None, cluster.brokers, settings)

    async def of_topic(self, detail: TopicDetail) -> tuple[list[GroupSummary], list[PartialFailure]]:
        """The consumer groups that have offsets of this topic or read it now, the furthest behind first."""
        brokers = [BrokerRef(name, address, "") for name, address in detail.addresses.items()]
        answers, failures = await self._calls.ask_brokers(
            brokers, lambda admin, broker: admin.topics.groups_at(broker.address, detail.name)
        )
        known = {name for _, groups in answers for name in groups}
        names = sorted(filter(current().allows, known))[:GROUPS_SHOWN_MAX]
        settings, _ = await self.settings() if names else ({}, [])
        rows = await self._summaries(names, detail.name, brokers, settings)
        return sorted(rows, key=lambda row: (-(row.lag if row.lag is not None else -1), row.name)), failures

    async def get(self, name: str) -> GroupDetail:
        """One group whole; of a silent broker what it told last.

        Raises GroupNotFound when every broker answered and none knows it.
        """
        cluster = await self._calls.cluster()
        all_settings, failures = await self.settings()
        if failures and name not in all_settings:  # it may be newer than what was told
            all_settings, failures = await self.settings(patiently=True)
        settings = all_settings.get(name, [])
        if not settings:
            if failures:
                raise BrokerUnreachable(f"{failures[0].what}: {failures[0].reason}")
            raise GroupNotFound(gettext("There is no consumer group %(name)s.") % {"name": name})
        holders = [broker for broker in cluster.brokers if broker.name in {item.broker_name for item in settings}]
        (told_places, more), (told_members, even_more), (told_leases, _) = await asyncio.gather(
            self._told_places.ask(name, self._calls, holders),
            self._told_members.ask(name, self._calls, holders),
            self._told_leases.ask(name, self._calls, holders),
        )
        places = [(broker, told.answer) for broker, told in told_places]
        members = [(broker, told.answer) for broker, told in told_members]
        moments = [told.at for _, told in told_places] + [told.at for _, told in told_members]
        late = {failure.what for failure in (*more, *even_more, *failures)}
        asked = [one for one in members if one[0].name not in late and one[1].consume_type != CONSUME_POP]
        running = await self._running(name, asked)
        leases = [(broker.name, told.answer) for broker, told in told_leases]
        known = {failure.what: failure for failure in (*even_more, *more, *failures)}
        is_broadcasting = broadcasts(found for _, found in members)
        return GroupDetail(
            name=name,
            settings=tuple(settings),
            queues=() if is_broadcasting else tuple(_queue_places(name, places, _owners(running))),
            clients=tuple(_clients(members)),
            subscriptions=_subscriptions(members),
            parties=next((tuple(found.disagreement) for _, found in members if found.disagreement), ()),
            message_model=next((found.message_model for _, found in members if found.connection_set), ""),
            at=min(moments, default=self._calls.clock()),
            failures=tuple(known.values()),
            running=running,
            modes={topic: mode for _, found in leases for topic, mode in sorted(found.modes.items())},
            leases=_oldest(leases),
            in_flight=sum(found.total for _, found in leases),
            is_broadcasting=is_broadcasting,
        )

    async def stacks(self, group: str, client_id: str) -> str:
        """Where a member's threads are now, "" when its client does not tell. Raises MemberNotFound, Refused."""
        cluster = await self._calls.cluster()
        found, failures = await self._calls.ask_brokers(
            cluster.brokers, lambda admin, broker: _members(admin, broker, group)
        )
        holders = [broker for broker, members in found
                   if any(one.client_id == client_id for one in members.connection_set)]  # fmt: skip
        if not holders:
            if failures:
                raise BrokerUnreachable(f"{failures[0].what}: {failures[0].reason}")
            raise MemberNotFound(
                gettext("%(client)s is not a member of %(group)s now.") % {"client": client_id or "?", "group": group}
            )
        try:
            info = await self._calls.call(
                lambda admin: admin.clients.running_info_at(holders[0].address, group, client_id, with_stacks=True),
                STACKS_TIMEOUT_S,
            )
        except ResponseError as exc:
            raise Refused(explain(exc)) from exc
        except CALL_ERRORS as exc:
            raise BrokerUnreachable(
                gettext("%(client_id)s did not answer: %(exc)s") % {"client_id": client_id, "exc": explain(exc)}
            ) from exc
        return str(info.get("jstack") or "")[:STACKS_CHARS_MAX]

    # ---- moving

    async def plan_reset(self, group: str, topic: str, timestamp_ms: int, offset: int | None) -> ResetPlan:
        """What a reset would do; nothing is changed. Raises TopicNotFound, Refused, BrokerUnreachable."""
        moves, is_online = await self._plan(
            group, topic, lambda admin: admin.offsets.plan_reset(group, topic, timestamp_ms, offset=offset)
        )
        return ResetPlan(group, topic, moves, timestamp_ms, offset is not None, is_online)

    async def plan_copy(self, source: str, group: str, topic: str) -> ResetPlan:
        """What taking over another group's offsets would do. Raises as plan_reset does."""
        moves, is_online = await self._plan(group, topic, lambda admin: admin.offsets.plan_clone(source, group, topic))
        return ResetPlan(group, topic, moves, TO_END, True, is_online)

    async def _plan(
        self, group: str, topic: str, ask: Callable[[AdminClient], Awaitable[list[QueueMove]]]
    ) -> tuple[tuple[QueueMove, ...], bool]:
        """The moves, and whether members run that would have to follow."""
        with refusals_of():
            try:
                moves = await self._calls.call(ask)
            except RouteNotFound as exc:
                raise TopicNotFound(gettext("There is no topic %(topic)s.") % {"topic": topic}) from exc
            members = await self._calls.call(lambda admin: admin.groups.members(group))
        return tuple(moves), members.keeps_offsets

    async def reset(self, plan: ResetPlan) -> bool:
        """Do it; True when running consumers were notified, False when the offsets were written. Raises Refused."""
        try:
            return await self._calls.call(
                lambda admin: admin.offsets.reset(
                    plan.group, plan.topic, plan.timestamp_ms, plan.moves, by_offset=plan.by_offset
                ),
                RESET_TIMEOUT_S,
            )
        except (ResponseError, ConfigError) as exc:
            raise Refused(explain(exc)) from exc
        except CALL_ERRORS as exc:
            raise BrokerUnreachable(
                gettext("perhaps only some queues were reset: %(exc)s") % {"exc": explain(exc)}
            ) from exc
        finally:
            self._told_places.changed()

    # ---- helpers

    async def _summaries(
        self,
        names: Sequence[str],
        topic: str | None,
        brokers: Sequence[BrokerRef],
        settings: dict[str, list[GroupSettings]],
    ) -> list[GroupSummary]:
        gate = asyncio.Semaphore(CALLS_AT_ONCE)

        async def one(name: str) -> GroupSummary:
            async with gate:
                return await self._summary(name, topic, brokers, settings.get(name, ()))

        return list(await asyncio.gather(*(one(name) for name in names)))

    async def _summary(
        self, group: str, topic: str | None, brokers: Sequence[BrokerRef], settings: Sequence[GroupSettings]
    ) -> GroupSummary:
        (stats, failures), (members, silent) = await asyncio.gather(
            self._calls.ask_brokers(
                brokers, lambda admin, broker: admin.offsets.stats_at(broker.address, group, topic)
            ),
            self._calls.ask_brokers(brokers, lambda admin, broker: _members(admin, broker, group)),
        )
        missing = {failure.what: failure for failure in (*failures, *silent)}
        is_broadcasting = broadcasts(found for _, found in members)
        if is_broadcasting:  # what brokers have is of another time, when its members shared the queues
            stats = []
        places = [place for _, table in stats for place in table.offset_table.values()]
        lags = [place.lag for place in places]
        times = [known_lag_ms(lag, place.lag_ms) for lag, place in zip(lags, places, strict=True)]
        why = joined(
            (
                gettext("without %(what)s: %(reason)s") % {"what": failure.what, "reason": failure.reason}
                for failure in missing.values()
            ),
            "; ",
        )
        return GroupSummary(
            group,
            sum(lags) if places else None,
            worst_lag_ms(zip(lags, times, strict=True)),
            max((place.last_timestamp for place in places), default=0),
            len({one.client_id for _, found in members for one in found.connection_set}) if members else None,
            any(found.disagreement for _, found in members),
            any(not item.consume_enable for item in settings),
            why or (None if places else no_lag(is_broadcasting)),
            bool(missing),
            _by_topic(stats),
            max((place.oldest_lease_ms for place in places), default=0),
            is_broadcasting,
        )

    async def _running(
        self, group: str, members: Sequence[tuple[BrokerRef, ConsumerConnection]]
    ) -> dict[str, dict[str, Any]]:
        """What members say of themselves, by client id; those that don't answer in time are left out."""
        asked = {one.client_id: broker for broker, found in members for one in found.connection_set}

        async def ask(client_id: str, broker: BrokerRef) -> dict[str, Any]:
            try:
                return await self._calls.call(
                    lambda admin: admin.clients.running_info_at(broker.address, group, client_id), OWNER_TIMEOUT_S
                )
            except CALL_ERRORS:  # not a failure of the page: its columns say "—"
                return {}

        some = list(asked.items())[:OWNERS_ASKED_MAX]
        infos = await asyncio.gather(*(ask(client_id, broker) for client_id, broker in some))
        return {client_id: info for (client_id, _), info in zip(some, infos, strict=True) if info}


def no_lag(is_broadcasting: bool) -> str:
    """Why no broker knows a lag of a group without offsets."""
    if is_broadcasting:
        return gettext(
            "Broadcasting: each member keeps its own offsets, so the brokers know neither the lag nor the rates."
        )
    return gettext("it has no offsets yet")


def _owners(running: dict[str, dict[str, Any]]) -> dict[MessageQueue, str]:
    """Queue to the client that holds it, as the members say."""
    return {
        queue: client_id
        for client_id, info in running.items()
        for queue in (info.get("mqTable") or {})
        if isinstance(queue, MessageQueue)
    }


def _by_topic(stats: Sequence[tuple[BrokerRef, ConsumeStats]]) -> tuple[GroupPlace, ...]:
    """A group's places, one for each topic on each broker. A queue in which it confirmed nothing counts as 0."""
    places: dict[tuple[str, str], GroupPlace] = {}
    for broker, table in stats:
        for queue, place in table.offset_table.items():
            done, lag, in_flight = place.done, place.lag, place.in_flight
            lag_ms = known_lag_ms(lag, place.lag_ms)
            known = places.get((queue.topic, broker.name))
            if known is not None:
                done, lag_ms = done + known.consumer_offset, worst_lag_ms([(lag, lag_ms), (known.lag, known.lag_ms)])
                lag, in_flight = lag + known.lag, in_flight + known.in_flight
            places[queue.topic, broker.name] = GroupPlace(queue.topic, broker.name, done, lag, lag_ms, in_flight)
    return tuple(places.values())


async def _place(admin: AdminClient, broker: BrokerRef, group: str) -> Place:
    with unlimited():  # of all offsets the group's own are taken
        offsets = await admin.offsets.of_group_at(broker.address, group)
    return await admin.offsets.stats_at(broker.address, group), offsets


async def _members(admin: AdminClient, broker: BrokerRef, group: str) -> ConsumerConnection:
    """The group's consumers at this broker; none is no failure."""
    try:
        return await admin.clients.consumers_at(broker.address, group)
    except ResponseError as exc:
        if exc.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return ConsumerConnection()
        raise


async def _leases(admin: AdminClient, broker: BrokerRef, group: str) -> GroupLeases:
    """What the group has in flight; Apache's brokers don't tell."""
    try:
        return await admin.groups.leases_at(broker.address, group, LEASES_SHOWN_MAX)
    except ResponseError as exc:
        if exc.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            return GroupLeases()
        raise


def _oldest(leases: Sequence[tuple[str, GroupLeases]]) -> tuple[InFlight, ...]:
    found = [InFlight(broker, message) for broker, table in leases for message in table.leases]
    return tuple(sorted(found, key=lambda one: one.message.popped_at)[:LEASES_SHOWN_MAX])


def _queue_places(
    group: str, places: Sequence[tuple[BrokerRef, Place]], owners: dict[MessageQueue, str]
) -> list[QueuePlace]:
    rows = []
    for broker, (stats, offsets) in places:
        for queue, place in stats.offset_table.items():
            written = offsets.get(queue.topic, {}).get(queue.queue_id)
            lag = None if written is None else max(place.broker_offset - written - place.done_ahead, 0)
            rows.append(
                QueuePlace(
                    topic=queue.topic,
                    broker_name=broker.name,
                    queue_id=queue.queue_id,
                    broker_offset=place.broker_offset,
                    consumer_offset=written,
                    lag_ms=known_lag_ms(lag, place.lag_ms),
                    last_consumed_ms=place.last_timestamp,
                    owner=owners.get(MessageQueue(queue.topic, broker.name, queue.queue_id)),
                    done_ahead=place.done_ahead,
                    in_flight=place.in_flight,
                )
            )
    return sorted(rows, key=lambda row: (row.is_retry, row.topic, row.broker_name, row.queue_id))


def _clients(members: Sequence[tuple[BrokerRef, ConsumerConnection]]) -> list[GroupMember]:
    found: dict[str, GroupMember] = {}
    for broker, connection in members:
        for one in connection.connection_set:
            known = found.get(one.client_id)
            brokers = (*known.brokers, broker.name) if known else (broker.name,)
            found[one.client_id] = GroupMember(one.client_id, one.client_addr, one.language, brokers)
    return sorted(found.values(), key=lambda row: row.client_id)


def _subscriptions(members: Sequence[tuple[BrokerRef, ConsumerConnection]]) -> tuple[tuple[str, str, str], ...]:
    wanted = {
        (topic, data.sub_string, data.expression_type)
        for _, connection in members
        for topic, data in connection.subscription_table.items()
    }
    return tuple(sorted(wanted))


def _group_table(broker: BrokerRef, body: bytes) -> dict[str, GroupSettings]:
    """A broker's groups by name. Raises BodyError."""
    table = SubscriptionGroupWrapper.from_json(body).subscription_group_table
    return {name: _settings(broker.name, config) for name, config in table.items()}


def _settings(broker_name: str, config: SubscriptionGroupConfig) -> GroupSettings:
    return GroupSettings(
        broker_name,
        config.consume_enable,
        config.consume_broadcast_enable,
        config.retry_max_times,
        config.retry_queue_nums,
    )
