"""The consumer or application that a text like "shop.consumers:orders" names."""

from __future__ import annotations

import importlib

from gantrymq.app.application import App
from gantrymq.client.blocking.consumers import SyncPushConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.errors import ConfigError


def consumer_of(target: str) -> PushConsumer | SyncPushConsumer | App:
    """Import the module and return the consumer or application in it, or what a function without arguments makes.

    ConfigError when the text names none. What the module itself raises is raised.
    """
    module_name, separator, name = target.partition(":")
    if not (separator and module_name and name):
        raise ConfigError(f"{target!r}: module:consumer is wanted, such as shop.consumers:orders")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as exc:
        if exc.name is None or not f"{module_name}.".startswith(f"{exc.name}."):
            raise  # the module is there, and misses another one
        raise ConfigError(f"{target!r}: there is no module {exc.name} in the current folder or installed") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{target!r}: {module_name} has no {name}") from None
    kinds = PushConsumer | SyncPushConsumer | App
    if callable(found) and not isinstance(found, kinds):
        found = found()
    if not isinstance(found, kinds):
        raise ConfigError(f"{target!r}: an App, PushConsumer or SyncPushConsumer is wanted, not {type(found).__name__}")
    return found
