"""What is told: a notice of one or several alarms, as text and as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils import translation
from django.utils.translation import get_language

from dashboard.language.choice import PLAIN
from dashboard.language.sentences import gettext, joined

FIRED, ACKNOWLEDGED, RESOLVED, TEST = "fired", "acknowledged", "resolved", "test"
NAMED_MAX = 10  # alarms in one notice; of the others the number is told
TITLE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Told:
    """One alert in a notice. ended_at: None while it is open. key: the same in all notices of this alert.

    acknowledged_by, assigned_to, note: who handles it, and the newest note; "" for none.
    """

    subject: str
    title: str
    text: str
    level: str
    begun_at: float
    ended_at: float | None
    link: str
    key: str
    acknowledged_by: str = ""
    assigned_to: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a channel is told at once. all: how many alarms there are, with those that are not named."""

    what: str
    rule: str
    title: str
    alarms: tuple[Told, ...]
    all: int
    language: str = PLAIN  # of the texts

    def to_json(self) -> str:
        """The body of a webhook, and what the delivery log keeps."""
        return json.dumps(
            {
                "what": self.what,
                "rule": self.rule,
                "title": self.title,
                "all": self.all,
                "language": self.language,
                "alarms": [
                    {
                        "subject": one.subject,
                        "title": one.title,
                        "text": one.text,
                        "level": one.level,
                        "begun_at": _moment(one.begun_at),
                        "ended_at": None if one.ended_at is None else _moment(one.ended_at),
                        "link": one.link,
                        "key": one.key,
                        "acknowledged_by": one.acknowledged_by,
                        "assigned_to": one.assigned_to,
                        "note": one.note,
                    }
                    for one in self.alarms
                ],
            },
            ensure_ascii=False,
        )


def notice_of(what: str, rule: str, alarms: Sequence[Told]) -> Notice:
    """One notice for all alarms of a rule that began, or ended, together."""
    title = alarms[0].title
    if len(alarms) > 1:
        title = gettext("%(worst)s, and %(count)s more") % {"worst": title, "count": len(alarms) - 1}
    if what == RESOLVED:
        title = gettext("Resolved: %(title)s") % {"title": title}
    elif what == ACKNOWLEDGED:
        title = gettext("Acknowledged: %(title)s") % {"title": title}
    language = get_language() or PLAIN
    return Notice(what, rule, title[:TITLE_CHARS_MAX], tuple(alarms[:NAMED_MAX]), len(alarms), language)


def notice_of_test(who: str, link: str) -> Notice:
    """What the button “Send a test” sends."""
    title = gettext("A test of GantryMQ's alerts, sent by %(who)s. %(link)s") % {"who": who, "link": link}
    return Notice(TEST, "", title, (), 0, get_language() or PLAIN)


def text_of(notice: str) -> str:
    """A kept notice (to_json) as lines for people."""
    told = json.loads(notice)
    if "text" in told:  # a letter
        return str(told["text"])
    with translation.override(told.get("language", PLAIN)):
        return "\n".join(_lines(told))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    yield told["title"]
    for one in told["alarms"]:
        yield from ("", joined([one["title"], one["text"]], ": "), _span(one["begun_at"], one["ended_at"]))
        yield from (*_handling(one), one["link"])
    if told["all"] > len(told["alarms"]):
        yield from ("", gettext("and %(more)s more") % {"more": told["all"] - len(told["alarms"])})


def _span(begun_at: str, ended_at: str | None) -> str:
    if ended_at is None:
        return gettext("since %(begin)s") % {"begin": begun_at}
    return gettext("since %(begin)s, until %(end)s") % {"begin": begun_at, "end": ended_at}


def _handling(one: Mapping[str, Any]) -> Iterator[str]:
    """Who handles an alert; a notice that an earlier version kept does not say."""
    if one.get("acknowledged_by"):
        yield gettext("acknowledged by %(who)s") % {"who": one["acknowledged_by"]}
    if one.get("assigned_to"):
        yield gettext("assigned to %(who)s") % {"who": one["assigned_to"]}
    if one.get("note"):
        yield gettext("note: %(text)s") % {"text": one["note"]}


def html_of(notice: str) -> str | None:
    """A letter's HTML; None of what is no letter."""
    html = json.loads(notice).get("html")
    return None if html is None else str(html)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
