"""How `gantry admin` writes and reads a topic's kind, permission and attributes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from gantrymq.message.topic_attributes import without_effect
from gantrymq.message.topics import topic_kind
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

PERMS = {"rw": PERM_READ | PERM_WRITE, "r": PERM_READ, "w": PERM_WRITE, "none": 0}


def perm_text(perm: int) -> str:
    """RocketMQ's bits as letters."""
    return ("r" if perm & PERM_READ else "-") + ("w" if perm & PERM_WRITE else "-")


def attributes_text(config: TopicConfig) -> str | None:
    return " ".join(f"{name}={value}" for name, value in sorted((config.attributes or {}).items())) or None


def without_effect_line(configs: Iterable[TopicConfig]) -> list[str]:
    """A line for attributes that only brokers of RocketMQ 5 act upon; none when there are none."""
    names = without_effect({name for config in configs for name in config.attributes or ()})
    return [f"kept, without effect at a GantryMQ broker: {', '.join(names)}"] if names else []


def parse_attribute(text: str) -> tuple[str, str]:
    """NAME=VALUE or +NAME=VALUE sets an attribute, -NAME removes it (then the value is empty)."""
    name, separator, value = text.partition("=")
    plain = name.strip().removeprefix("+")
    is_removal = plain.startswith("-")
    if is_removal == bool(separator) or not plain.removeprefix("-").strip() or (separator and not value.strip()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither NAME=VALUE, such as retention.ms=86400000, nor -NAME, which removes one"
        )
    if "," in text:
        raise argparse.ArgumentTypeError(f"{text!r}: give --attribute once for each, without commas")
    return plain.strip(), value.strip()


def kind_of(topic: str, system: set[str]) -> str:
    """A topic's kind as tables and their filters name it; `system`: the names of clusters and brokers."""
    kind = topic_kind(topic, system)
    return "dead letters" if kind == "dead letter" else kind
