"""Why is a consumer group behind? Causes with their evidence and what to do, the likeliest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext, ngettext

from dashboard.cluster import units
from dashboard.cluster.group_values import GroupDetail, QueuePlace
from dashboard.groups.member_load import HeldMessage, MemberLoad
from dashboard.groups.trend import State, state
from dashboard.status.board import WatchedGroup
from dashboard.status.check import Check, Level

HELD_LONG_MS = 10_000
SLOWER_TIMES = 3.0  # than the others' median
SLOW_CALL_MS = 20.0  # a faster listener is no cause
SKEW_SHARE = 0.5  # of all that waits, in one of at least SKEW_QUEUES_MIN queues
SKEW_QUEUES_MIN = 3
SKEW_LAG_MIN = 100
SKIPPED_RATIO_MIN = 0.2
FILTER_WATCHED_S = 45.0  # before that a burst would be taken for what the filter skips
FILTER_RATE_MIN = 1.0  # messages a second, below which rates of different minutes say nothing
FAILED_RATIO_MIN = 0.05


def lag_checks(detail: GroupDetail, seen: WatchedGroup, loads: Sequence[MemberLoad]) -> list[Check]:
    """What keeps the group behind; nothing when nothing waits. What is not known is no cause."""
    if not detail.lag and not seen.lag:
        return []
    return [
        *_no_member(detail, seen),
        *_held(loads),
        *_stuck(seen),
        *_without_owner(detail, loads),
        *_failing(loads),
        *_slowest(loads),
        *_all_busy(seen, loads),
        *_skew(detail),
        *_idle_members(detail, loads),
        *_filter(detail, seen, loads),
        *_more_than_it_takes(seen),
    ]


def _no_member(detail: GroupDetail, seen: WatchedGroup) -> Iterator[Check]:
    if not detail.clients and not detail.is_partial:
        yield Check(
            Level.WARN,
            gettext("The group has no members"),
            ngettext("%(count)s message is waiting", "%(count)s messages are waiting", detail.lag or 0)
            % {"count": units.count(detail.lag)},
            gettext("Start its consumers, or check their logs."),
        )


def _stuck(seen: WatchedGroup) -> Iterator[Check]:
    if state(seen) is State.STUCK and seen.idle_since is not None:
        yield Check(
            Level.WARN,
            gettext("Its offset does not move"),
            gettext("no offset was committed for %(time)s")
            % {"time": units.duration(round(seen.at - seen.idle_since))},
            gettext("An offset moves past a message only when it and all messages before it are done."),
        )


def _held(loads: Sequence[MemberLoad]) -> Iterator[Check]:
    held = [(load, load.oldest) for load in loads if load.oldest is not None and load.oldest.held_ms >= HELD_LONG_MS]
    for load, message in sorted(held, key=lambda item: -item[1].held_ms)[:1]:
        told = gettext("%(client)s has been working on it since then")
        if len(held) > 1:
            told = gettext(
                "%(client)s has been working on it since then, and %(count)s more members have held one as long"
            )
        yield Check(
            Level.WARN,
            gettext("A message has been in progress for %(time)s") % {"time": units.duration(message.held_ms / 1000)},
            told % {"client": load.client_id, "count": len(held) - 1},
            gettext("Its listener is waiting for something. Check the message, and the stacks of that client."),
            link=_page_of(message),
            link_text=f"{message.topic} q{message.queue_id} @ {message.queue_offset}",
        )


def _without_owner(detail: GroupDetail, loads: Sequence[MemberLoad]) -> Iterator[Check]:
    if not loads or not all(load.has_answered for load in loads):
        return
    alone = [queue for queue in detail.queues if not queue.owner and queue.lag and not queue.is_retry]
    if alone:
        waiting = units.count(sum(queue.lag or 0 for queue in alone))
        yield Check(
            Level.WARN,
            ngettext("%(count)s queue without an owner", "%(count)s queues without an owner", len(alone))
            % {"count": len(alone)},
            gettext("%(count)s messages are waiting there, the first in %(queue)s")
            % {"count": waiting, "queue": _name(alone[0])},
            gettext(
                "Members share the queues again every 20 s. If this lasts, none of them subscribes "
                "to that topic, or they see different lists of members."
            ),
        )


def _failing(loads: Sequence[MemberLoad]) -> Iterator[Check]:
    failed = sum(load.failed_rate or 0.0 for load in loads)
    handled = failed + sum(load.ok_rate or 0.0 for load in loads)
    if handled and failed / handled >= FAILED_RATIO_MIN:
        worst = max(loads, key=lambda load: load.failed_rate or 0.0)
        yield Check(
            Level.WARN,
            gettext("%(percent)s of the messages fail") % {"percent": units.percent(failed / handled)},
            gettext("%(rate)s a second, most of them at %(client)s")
            % {"rate": units.rate(failed), "client": worst.client_id},
            gettext(
                "Failed messages are delivered again later and compete with new ones. The clients' logs "
                "say why they failed."
            ),
        )


def _slowest(loads: Sequence[MemberLoad]) -> Iterator[Check]:
    timed = [load for load in loads if load.call_ms is not None]
    if len(timed) < 2:
        return
    slowest = max(timed, key=lambda load: load.call_ms or 0.0)
    others = median(load.call_ms or 0.0 for load in timed if load is not slowest)
    took_ms = slowest.call_ms or 0.0
    if took_ms >= SLOW_CALL_MS and took_ms >= SLOWER_TIMES * others:
        yield Check(
            Level.WARN,
            gettext("One client is slower than the others"),
            gettext(
                "%(client)s needs %(time)s for a call, the others %(others)s; %(count)s messages are "
                "waiting in its queues"
            )
            % {
                "client": slowest.client_id,
                "time": units.milliseconds(took_ms),
                "others": units.milliseconds(others),
                "count": units.count(slowest.lag),
            },
            gettext("Check that machine. Its queues are not reassigned while it stays connected."),
        )


def _all_busy(seen: WatchedGroup, loads: Sequence[MemberLoad]) -> Iterator[Check]:
    full = [load for load in loads if load.busy and load.concurrency and load.busy >= load.concurrency]
    if full and len(full) == len(loads):
        took = [load.call_ms for load in full if load.call_ms is not None]
        mean = units.milliseconds(sum(took) / len(took)) if took else ""
        told = gettext("%(count)s calls in progress; a call takes %(time)s")
        told = told if took else gettext("%(count)s calls in progress")
        yield Check(
            Level.WARN,
            gettext("All listeners are busy"),
            told % {"count": sum(load.busy or 0 for load in full), "time": mean},
            gettext("Make the listener faster, raise its concurrency, or start more members, up to one a queue."),
        )


def _skew(detail: GroupDetail) -> Iterator[Check]:
    queues = [queue for queue in detail.queues if queue.lag is not None and not queue.is_retry]
    total = sum(queue.lag or 0 for queue in queues)
    if len(queues) < SKEW_QUEUES_MIN or total < SKEW_LAG_MIN:
        return
    worst = max(queues, key=lambda queue: queue.lag or 0)
    share = (worst.lag or 0) / total
    if share >= SKEW_SHARE:
        told = gettext("%(percent)s of the waiting messages are in %(queue)s")
        if worst.owner:
            told = gettext("%(percent)s of the waiting messages are in %(queue)s, held by %(owner)s")
        yield Check(
            Level.WARN,
            gettext("One queue has most of the lag"),
            told % {"percent": units.percent(share), "queue": _name(worst), "owner": worst.owner},
            gettext("Its producers prefer that queue (one key for many messages), or a message there blocks it."),
        )


def _idle_members(detail: GroupDetail, loads: Sequence[MemberLoad]) -> Iterator[Check]:
    idle = [load for load in loads if load.has_answered and not load.queues]
    if idle and len(idle) < len(loads):
        yield Check(
            Level.WARN,
            ngettext(
                "%(count)s of %(all)s members holds no queue", "%(count)s of %(all)s members hold no queue", len(idle)
            )
            % {"count": len(idle), "all": len(loads)},
            gettext("%(clients)s, but only this many queues: %(count)s")
            % {"clients": ", ".join(load.client_id for load in idle[:3]), "count": len(detail.queues)},
            gettext("More members than queues do not help: give the topic more queues."),
        )


def _filter(detail: GroupDetail, seen: WatchedGroup, loads: Sequence[MemberLoad]) -> Iterator[Check]:
    """A position moves past what the filter skips; listeners see the rest. Members tell the rate of a minute."""
    filters = {expression for _, expression, _ in detail.subscriptions if expression not in ("*", "")}
    answered = all(load.has_answered and load.ok_rate is not None for load in loads)
    watched_s = seen.at - seen.history[0][0] if seen.history else 0.0
    moves = seen.out_rate
    if not filters or not loads or not answered or watched_s < FILTER_WATCHED_S or not moves or moves < FILTER_RATE_MIN:
        return
    handled = sum((load.ok_rate or 0.0) + (load.failed_rate or 0.0) for load in loads)
    skipped = 1 - handled / moves
    if skipped >= SKIPPED_RATIO_MIN:
        yield Check(
            Level.WARN,
            gettext("The filter skips about %(percent)s") % {"percent": units.percent(skipped)},
            gettext("its offset moves by %(rate)s a second, its listeners receive %(handled)s")
            % {"rate": units.rate(moves), "handled": units.rate(handled)},
            gettext(
                "Skipped messages cost time, too. A separate topic for the messages of this group would avoid that."
            ),
        )


def _more_than_it_takes(seen: WatchedGroup) -> Iterator[Check]:
    if state(seen) is State.FALLING_BEHIND and seen.in_rate and seen.out_rate is not None:
        yield Check(
            Level.WARN,
            gettext("Messages arrive faster than the group consumes them"),
            gettext("%(rate)s a second stored, %(consumed)s consumed")
            % {"rate": units.rate(seen.in_rate), "consumed": units.rate(seen.out_rate)},
            gettext("At this rate the lag keeps growing."),
        )


def _name(queue: QueuePlace) -> str:
    return f"{queue.topic} {queue.broker_name} · {queue.queue_id}"


def _page_of(message: HeldMessage) -> str:
    """Its page; "" for a topic whose name no address takes."""
    try:
        return reverse("topic-message", args=[message.topic, message.place])
    except NoReverseMatch:
        return ""
