"""What a view says about the change it made. The middleware (recording.py) writes it down with the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from dashboard.language.sentences import in_english

ATTRIBUTE = "audit_notes"
TROUBLE = "audit_trouble"


@dataclass(slots=True)
class Note:
    """One change of a request. who: when it is another account than the request's."""

    action: str
    target: str
    details: dict[str, Any] = field(default_factory=dict)
    who: str = ""


def note(
    request: HttpRequest, action: str, target: str = "", details: Mapping[str, Any] | None = None, *, who: str = ""
) -> None:
    """The request changed something: say what, in words for a list. It becomes an entry, and a line in the log.

    What is None or "" in the details is left out, and the target's name.
    """
    noted: list[Note] = request.__dict__.setdefault(ATTRIBUTE, [])
    given = (details or {}).items()
    shown = {key: value for key, value in given if value not in (None, "") and (key, value) != ("name", target)}
    noted.append(Note(action, target, shown, who))


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The details of a change: of each value that differs what it was, and what it is."""
    return {
        key: {"before": before.get(key), "after": after.get(key)}
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


def note_nothing(request: HttpRequest) -> None:
    """The request changed nothing, although its method could: a look before the change, a dry run."""
    request.__dict__.setdefault(ATTRIBUTE, [])


def tell_trouble(request: HttpRequest, text: str) -> None:
    """Say on the page that is shown next what went wrong. In the log the request has failed, where nothing is noted."""
    messages.error(request, text)
    request.__dict__[TROUBLE] = in_english(text)


def trouble_of(request: HttpRequest) -> str:
    """What went wrong, "" if nothing was said to."""
    return str(request.__dict__.get(TROUBLE, ""))


def notes_of(request: HttpRequest) -> list[Note] | None:
    """What was noted; None when the view said nothing at all."""
    return request.__dict__.get(ATTRIBUTE)
