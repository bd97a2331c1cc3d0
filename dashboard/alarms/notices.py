"""What is told: a notice of one or several alarms, as text and as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

FIRED, RESOLVED, TEST = "fired", "resolved", "test"
NAMED_MAX = 10  # alarms in one notice; of the others the number is told
TITLE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Told:
    """One alarm in a notice. ended_at: None while it rings."""

    subject: str
    title: str
    text: str
    level: str
    begun_at: float
    ended_at: float | None
    link: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What a channel is told at once. all: how many alarms there are, with those that are not named."""

    what: str
    rule: str
    title: str
    alarms: tuple[Told, ...]
    all: int

    def to_json(self) -> str:
        """The body of a webhook, and what the delivery log keeps."""
        return json.dumps(
            {
                "what": self.what,
                "rule": self.rule,
                "title": self.title,
                "all": self.all,
                "alarms": [
                    {
                        "subject": one.subject,
                        "title": one.title,
                        "text": one.text,
                        "level": one.level,
                        "begun_at": _moment(one.begun_at),
                        "ended_at": None if one.ended_at is None else _moment(one.ended_at),
                        "link": one.link,
                    }
                    for one in self.alarms
                ],
            },
            ensure_ascii=False,
        )


def notice_of(what: str, rule: str, alarms: Sequence[Told]) -> Notice:
    """One notice for all alarms of a rule that began, or ended, together."""
    word = {FIRED: "", RESOLVED: "Over: "}[what]
    more = f", and {len(alarms) - 1} more" if len(alarms) > 1 else ""
    title = f"{word}{alarms[0].title}{more}"[:TITLE_CHARS_MAX]
    return Notice(what, rule, title, tuple(alarms[:NAMED_MAX]), len(alarms))


def notice_of_test(who: str, link: str) -> Notice:
    """What the button “Send a test” sends."""
    return Notice(TEST, "", f"A test of GantryMQ's alarms, sent by {who}. {link}", (), 0)


def text_of(notice: str) -> str:
    """A kept notice (to_json) as lines for people."""
    told = json.loads(notice)
    if "text" in told:  # a letter
        return str(told["text"])
    lines = [told["title"]]
    for one in told["alarms"]:
        until = f", until {one['ended_at']}" if one["ended_at"] else ""
        lines += ["", f"{one['title']}: {one['text']}", f"since {one['begun_at']}{until}", one["link"]]
    if told["all"] > len(told["alarms"]):
        lines += ["", f"and {told['all'] - len(told['alarms'])} more"]
    return "\n".join(lines)


def html_of(notice: str) -> str | None:
    """A letter's HTML; None of what is no letter."""
    html = json.loads(notice).get("html")
    return None if html is None else str(html)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
