"""Which topics and groups an account may see: those whose names begin with one of its prefixes.

The limit of a request stands in its context, and is looked at where names leave for the cluster (wire.py) and where
lists come back. Work of the process itself, such as the sampler's, has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext

from gantrymq.errors import GantryError
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX

PREFIXES_MAX = 50
PREFIX = re.compile(r"[|a-zA-Z0-9_-]{1,127}")
_SEPARATORS = re.compile(r"[\s,]+")


class BadPrefix(GantryError):
    """A text is no list of prefixes; it says why."""


class NameRefused(PermissionDenied):
    """The request is about a topic or group that its account may not see."""


@dataclass(frozen=True, slots=True)
class NameLimit:
    """prefixes: without any, every name is allowed."""

    prefixes: tuple[str, ...] = ()

    @property
    def is_limited(self) -> bool:
        return bool(self.prefixes)

    def allows(self, name: str) -> bool:
        """Whether the account may see the topic or group; retries and dead letters are their group's."""
        return not self.prefixes or name.removeprefix(RETRY_PREFIX).removeprefix(DLQ_PREFIX).startswith(self.prefixes)

    def refusal(self) -> NameRefused:
        begins = ", ".join(self.prefixes)
        return NameRefused(
            gettext("This account can see topics and groups whose names begin with %(begins)s, and no others.")
            % {"begins": begins}
        )


NO_LIMIT = NameLimit()
_current: ContextVar[NameLimit] = ContextVar("name_limit", default=NO_LIMIT)


def current() -> NameLimit:
    """The limit of the request that this task works for."""
    return _current.get()


def use(limit: NameLimit) -> None:
    """From now on, in this task, for this account."""
    _current.set(limit)


@contextmanager
def unlimited() -> Iterator[None]:
    """For a question whose answer is filtered afterwards."""
    token = _current.set(NO_LIMIT)
    try:
        yield
    finally:
        _current.reset(token)


def read_prefixes(text: str) -> tuple[str, ...]:
    """Prefixes that a person typed, separated by spaces, commas or lines. Raises BadPrefix."""
    found = sorted({part for part in _SEPARATORS.split(text) if part})
    for prefix in found:
        if not PREFIX.fullmatch(prefix):
            raise BadPrefix(
                gettext("%(prefix)s cannot begin a name: use letters, digits, _ - and |, at most 127.")
                % {"prefix": f"{prefix!r}"}
            )
    if len(found) > PREFIXES_MAX:
        raise BadPrefix(gettext("At most %(prefixes_max)s prefixes.") % {"prefixes_max": PREFIXES_MAX})
    return tuple(found)
