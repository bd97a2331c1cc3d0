"""The setting GANTRYMQ, as values that were checked.

    GANTRYMQ = {
        "NAME_SERVERS": "127.0.0.1:9876",
        "PRODUCER": {"group": "shop"},      # keyword arguments of SyncProducer
        "CONSUMER": {"concurrency": 4},     # keyword arguments of every SyncPushConsumer; a function's own go before
        "OUTBOX": {"KEEP_SENT_S": 3600},    # fields of OutboxSettings, in capitals
    }

Only the first is needed. Connections, credentials and TLS are keyword arguments of both, so they stand in both.
"""

from __future__ import annotations

import dataclasses
import difflib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gantrymq.client.connection.name_servers import parse_name_servers
from gantrymq.client.connection.option_checks import check_above_zero, check_at_least, check_types
from gantrymq.client.consume.options import PushConsumerOptions
from gantrymq.client.produce.options import ProducerOptions
from gantrymq.errors import ConfigError, GantryError

NAME = "GANTRYMQ"
KEYS = ("NAME_SERVERS", "PRODUCER", "CONSUMER", "OUTBOX")
LEASE_SENDS = 6
POWER_MAX = 30  # of a doubling, which is cut anyway
ANY_GROUP = "checked"  # consumers name their groups themselves


@dataclass(frozen=True, kw_only=True)
class OutboxSettings:
    """How the outbox is sent and cleaned."""

    batch: int = 100  # messages that a relay takes at once
    poll_s: float = 1.0  # between two looks of a relay that found nothing to send
    send_timeout_s: float = 10.0  # of one try; a relay keeps its rows locked meanwhile
    retry_first_s: float = 1.0  # after a message's first failure; doubles with each further one
    retry_max_s: float = 300.0  # and is never longer
    refusals_max: int = 10  # a message that brokers refused so often waits for a person; unreachable ones do not count
    keep_sent_s: float = 86_400.0  # sent and discarded messages stay for so long
    keep_sent_rows: int = 100_000  # and so many of them at most
    unsent_rows_max: int = 1_000_000  # more are refused, OutboxFull

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 1, "batch", "refusals_max", "unsent_rows_max")
        check_above_zero(self, "poll_s", "send_timeout_s", "retry_first_s")
        check_at_least(self, 0, "keep_sent_s", "keep_sent_rows")
        if self.retry_max_s < self.retry_first_s:
            raise ConfigError(f"retry_max_s={self.retry_max_s:g}: it must be at least retry_first_s")

    @property
    def lease_s(self) -> float:
        """For how long a relay reserves rows that it can't lock. In the second half of that time it sends none."""
        return self.send_timeout_s * LEASE_SENDS

    def pause_s(self, tries: int) -> float:
        """Until a message is tried again that failed so often: doubling, and up to a quarter shorter by chance."""
        longest: float = min(self.retry_first_s * 2 ** min(tries - 1, POWER_MAX), self.retry_max_s)
        return longest * random.uniform(0.75, 1.0)


@dataclass(frozen=True)
class GantrySettings:
    """The setting, checked."""

    name_servers: str | Sequence[str] = ""
    producer: Mapping[str, Any] = field(default_factory=dict)
    consumer: Mapping[str, Any] = field(default_factory=dict)
    outbox: OutboxSettings = OutboxSettings()


def current() -> GantrySettings:
    """What the project's settings say. ImproperlyConfigured when something is wrong with it."""
    found, problems = parse(getattr(settings, NAME, {}))
    if problems:
        raise ImproperlyConfigured("; ".join(problems))
    return found


def parse(value: object) -> tuple[GantrySettings, list[str]]:
    """The settings, and what is wrong with them: a sentence each, none when they can be used."""
    if not isinstance(value, Mapping):
        return GantrySettings(), [f"{NAME}: a dictionary is wanted, not {type(value).__name__}"]
    problems = unknown_keys(value, KEYS, NAME)
    name_servers = value.get("NAME_SERVERS", "")
    try:
        parse_name_servers(name_servers)
    except GantryError as exc:
        problems.append(f'{NAME}["NAME_SERVERS"]: {exc}')
        name_servers = "127.0.0.1:9876"  # so that the rest is checked, too
    producer = _keywords(value, "PRODUCER", problems)
    consumer = _keywords(value, "CONSUMER", problems)
    problems += _problems_of(ProducerOptions, {"name_servers": name_servers, **producer}, "PRODUCER")
    group = {"name_servers": name_servers, "group": ANY_GROUP}
    problems += _problems_of(PushConsumerOptions, {**group, **consumer}, "CONSUMER")
    outbox = {key.lower(): each for key, each in _keywords(value, "OUTBOX", problems).items()}
    wrong = _problems_of(OutboxSettings, outbox, "OUTBOX", str.upper)
    own = OutboxSettings() if wrong else OutboxSettings(**outbox)
    return GantrySettings(name_servers, producer, consumer, own), problems + wrong


def unknown_keys(value: Iterable[object], known: Sequence[str], place: str) -> list[str]:
    """A sentence for each key that means nothing, with the one that may have been meant."""
    problems = []
    for key in value:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            meant = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
            problems.append(f"{place}: {key!r} means nothing{meant}")
    return problems


def _keywords(value: Mapping[Any, Any], key: str, problems: list[str]) -> Mapping[str, Any]:
    found = value.get(key, {})
    if isinstance(found, Mapping) and all(isinstance(name, str) for name in found):
        return found
    problems.append(f'{NAME}["{key}"]: a dictionary with texts as keys is wanted')
    return {}


def _problems_of(kind: Any, keywords: Mapping[str, Any], key: str, spelt: Any = str) -> list[str]:
    """What keeps an object from being made with these keywords."""
    place = f'{NAME}["{key}"]'
    names = [spelt(each.name) for each in dataclasses.fields(kind) if each.name != "name_servers"]
    given = [spelt(name) for name in keywords if name != "name_servers"]
    if unknown := unknown_keys(given, names, place):
        return unknown
    try:
        kind(**keywords)
    except GantryError as exc:
        return [f"{place}: {exc}"]
    return []
