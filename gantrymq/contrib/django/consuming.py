"""Functions of a Django project that consume: marked with `consumer` in `consumers.py` of an app.

Each call of such a function has its thread's database connections to itself, as a view has them: those that are broken
or too old (CONN_MAX_AGE) are closed before and after it.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

from django.db import close_old_connections, reset_queries
from django.utils.module_loading import autodiscover_modules

from gantrymq.client.blocking.consumers import SyncPushConsumer
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.listener_calls import Listener
from gantrymq.client.consume.options import PushConsumerKeywords
from gantrymq.contrib.django import settings
from gantrymq.errors import ConfigError, WrongType
from gantrymq.message.model import MessageExt

Function = TypeVar("Function", bound=Callable[[list[MessageExt]], Any])


@dataclass(frozen=True)
class Registered:
    """A function that consumes a topic for a group."""

    topic: str
    group: str
    listener: Callable[[list[MessageExt]], Any]
    expression: str
    sql: str | None
    keywords: Mapping[str, Any]

    @property
    def place(self) -> str:
        """Where the function stands."""
        return f"{self.listener.__module__}.{self.listener.__qualname__}"


_registered: dict[str, Registered] = {}


def consumer(
    topic: str, *, group: str, expression: str = "*", sql: str | None = None, **keywords: Unpack[PushConsumerKeywords]
) -> Callable[[Function], Function]:
    """Mark a function that `manage.py consume` calls with the topic's messages; it is otherwise left as it is.

    expression, sql: which messages, as in SyncPushConsumer.subscribe. keywords: of SyncPushConsumer, over those of
    GANTRYMQ["CONSUMER"]. What the function returns or raises means what it means for a listener there. WrongType for an
    async function, ConfigError when the group has another function already: the members of a group consume the same.
    """

    def register(function: Function) -> Function:
        if inspect.iscoroutinefunction(function) or not callable(function):
            raise WrongType(f"consumer: a plain function is wanted, not {function!r:.60}")
        own = Registered(topic, group, function, expression, sql, dict(keywords))
        other = _registered.get(group)
        if other is not None and other.place != own.place:
            raise ConfigError(f"group {group}: {other.place} consumes for it already; {own.place} needs its own group")
        _registered[group] = own
        return function

    return register


def registered(groups: Sequence[str] = ()) -> list[Registered]:
    """The functions of the project, or those of these groups. ConfigError when there are none, or not for a group."""
    autodiscover_modules("consumers")
    if not _registered:
        raise ConfigError("nothing to consume: mark a function in an app's consumers.py with @consumer(topic, group=…)")
    for group in groups:
        if group not in _registered:
            raise ConfigError(f"no function consumes for the group {group}; there are {', '.join(sorted(_registered))}")
    return [_registered[group] for group in (groups or sorted(_registered))]


def made(own: Registered) -> SyncPushConsumer:
    """The function's consumer, not started yet. ConfigError, WrongType or MessageRejected for wrong arguments."""
    project = settings.current()
    keywords = {**project.consumer, **own.keywords, "group": own.group}
    found = SyncPushConsumer(project.name_servers, listener=_with_connections(own.listener), **keywords)
    found.subscribe(own.topic, own.expression, sql=own.sql)
    return found


def run(consumers: Sequence[SyncPushConsumer], when_started: Callable[[], object]) -> int:
    """Consume with all of them until SIGTERM or SIGINT, then close them; main thread only. Returns the exit code, as
    SyncPushConsumer.run does: 1 when a call of some consumer did not end in time."""
    stopped = threading.Event()
    with ExitStack() as stack, StopSignals(stopped.set):
        for each in consumers:
            stack.enter_context(each)
        when_started()
        stopped.wait()
        with ThreadPoolExecutor(len(consumers)) as pool:  # all at once: each may wait for its calls in progress
            list(pool.map(SyncPushConsumer.close, consumers))
    return max(each.exit_code for each in consumers)


def _with_connections(listener: Callable[[list[MessageExt]], Any]) -> Listener:
    @functools.wraps(listener)
    def call(messages: list[MessageExt]) -> Any:
        close_old_connections()
        reset_queries()
        try:
            return listener(messages)
        finally:
            close_old_connections()

    return call
