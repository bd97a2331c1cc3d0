"""Checks of consumer groups and dead letters: who is behind, who has no members, what failed for good. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from appliance.settings.alert_names import RuleKind
from dashboard.cluster import units
from dashboard.language.sentences import gettext, joined, ngettext
from dashboard.status.board import Stored, WatchedGroup
from dashboard.status.check import Check, Harm, Level, page_of

BEHIND_MS = 5 * 60_000
ALONE_S = 60.0  # a deployment takes a group's members away for a while
NAMED_MAX = 5  # groups with a card of their own
RULES = (RuleKind.GROUP_BEHIND, RuleKind.GROUP_LAG, RuleKind.GROUP_ALONE, RuleKind.GROUP_RISING)


def group_problems(groups: Sequence[WatchedGroup], now: float) -> list[Check]:
    """The groups that are left alone or behind, the worst first."""
    bad = [group for group in groups if _is_behind(group) or _is_alone(group, now)]
    bad.sort(key=lambda group: (not _is_alone(group, now), -(group.lag_ms or 0), -(group.lag or 0), group.name))
    named, more = bad[:NAMED_MAX], bad[NAMED_MAX:]
    alone = [group for group in more if _is_alone(group, now)]
    behind = [group for group in more if not _is_alone(group, now)]
    return [
        *(_problem(group, now) for group in named),
        *_more(
            gettext("More consumer groups have no members"), gettext("more groups without members"), alone, Harm.STOPS
        ),
        *_more(gettext("More consumer groups are behind"), gettext("more groups behind"), behind, Harm.SLOWS),
    ]


def _more(title: str, name: str, groups: Sequence[WatchedGroup], harm: Harm) -> list[Check]:
    """One line for those that have none of their own."""
    if not groups:
        return []
    number = ngettext("%(count)s consumer group", "%(count)s consumer groups", len(groups))
    waiting = {"count": units.count(sum(group.lag or 0 for group in groups))}
    return [
        Check(
            Level.WARN,
            title,
            joined(
                [
                    number % {"count": units.count(len(groups))},
                    gettext("%(count)s messages are waiting for them") % waiting,
                ]
            ),
            gettext("The list of groups shows the worst first."),
            name,
            reverse("groups"),
            rules=RULES,
            about=tuple(group.name for group in groups),
            harm=harm,
        )
    ]


def dead_letter_problems(stored: Stored | None) -> list[Check]:
    """Messages that failed for good, as long as they are stored."""
    if stored is None or not stored.dead_letters:
        return []
    number = sum(count for _, count in stored.dead_letters)
    in_all = ngettext("%(count)s dead letter", "%(count)s dead letters", number)
    named = joined(joined([group, units.count(count)], ": ") for group, count in stored.dead_letters[:NAMED_MAX])
    more = len(stored.dead_letters) - NAMED_MAX
    if more > 0:
        named = gettext("%(groups)s and %(count)s more groups") % {"groups": named, "count": more}
    return [
        Check(
            Level.WARN,
            gettext("Dead letters are waiting"),
            joined([in_all % {"count": units.count(number)}, named], "; "),
            gettext(
                "Their consumers failed at every attempt. Look at one, fix the cause, and resend "
                "them before they expire."
            ),
            name=gettext("dead letters"),
            link=_dead_letters_page(stored),
            rules=(RuleKind.DEAD_LETTERS,),
            about=tuple(group for group, _ in stored.dead_letters),
        )
    ]


def _is_behind(group: WatchedGroup) -> bool:
    return group.lag_ms is not None and group.lag_ms >= BEHIND_MS


def _is_alone(group: WatchedGroup, now: float) -> bool:
    return group.alone_since is not None and now - group.alone_since >= ALONE_S


def _problem(group: WatchedGroup, now: float) -> Check:
    """Its title stays the same while the figures move: they are the evidence."""
    values, harm = {"group": group.name}, Harm.SLOWS
    if _is_alone(group, now):
        title, members, harm = gettext("%(group)s has no members"), "", Harm.STOPS
        action = gettext(
            "No consumer reads its messages. Start its consumers; if the group is no longer needed, delete it."
        )
    else:
        title = gettext("%(group)s is behind")
        count = group.members
        members = "" if count is None else ngettext("%(count)s member", "%(count)s members", count) % {"count": count}
        action = gettext(
            "Messages arrive faster than its consumers handle them, or one consumer is stuck. The "
            "group's page shows which queues are waiting."
        )
        if count == 0:  # since a moment, or the dashboard has just started: they may be reconnecting
            action = gettext("No consumer is connected now. Start its consumers if they do not reconnect.")
    evidence = joined([_age(group), _waiting(group), members])
    name = gettext("group %(group)s") % values
    link, about = page_of("group", group.name, "groups"), (group.name,)
    return Check(Level.WARN, title % values, evidence, action, name, link, rules=RULES, about=about, harm=harm)


def _age(group: WatchedGroup) -> str:
    if group.lag_ms is None or not _is_behind(group):
        return ""
    text = gettext("at least %(time)s behind") if group.is_partial else gettext("%(time)s behind")
    return text % {"time": units.duration(group.lag_ms // 1000)}


def _waiting(group: WatchedGroup) -> str:
    lag = 0 if group.lag is None else group.lag
    if group.is_partial:
        text = ngettext("at least %(count)s message is waiting", "at least %(count)s messages are waiting", lag)
    else:
        text = ngettext("%(count)s message is waiting", "%(count)s messages are waiting", lag)
    return text % {"count": units.count(group.lag)}


def _dead_letters_page(stored: Stored) -> str:
    """The one group's, or the list of them."""
    [(group, _), *others] = stored.dead_letters
    return reverse("dead-letters") if others else page_of("dead-letters-group", group, "dead-letters")
