"""The shape of an answer: names of its header fields, and of its JSON body every member's path with its kind of value.

Keys that are data (queues, topics, groups, addresses, numbers) are written as "*", so answers about different things
have one shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gantrymq.errors import BodyError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from gantrymq.remoting.command import RemotingCommand

# Members that are maps from names to values; everything else is a bean with members of its own.
MAPS = re.compile(
    r"(offset|topicConfig|subscriptionGroup|subscription|consumer|messageQueue|mq|status|brokerAddr|clusterAddr|filterServer)"
    r"Table|table|data|brokerAddrs|correctionOffsets|properties|attributes|userConsumerInfo"
)


def ext_names(answer: RemotingCommand) -> list[str]:
    return sorted(answer.ext_fields)


def paths(body: bytes) -> dict[str, set[str]]:
    """Path of each member to the kinds of its values; {} for a body that is no JSON."""
    if body[:1] not in (b"{", b"["):
        return {}
    try:
        document = fastjson.loads(body)
    except BodyError:
        return {}
    found: dict[str, set[str]] = {}
    for path, kind in _walk("", document):
        found.setdefault(path, set()).add(kind)
    return found


def _walk(path: str, value: Any) -> Iterator[tuple[str, str]]:
    yield path, _kind(value)
    if isinstance(value, dict):
        is_map = bool(MAPS.fullmatch(path.rpartition(".")[2])) or path.endswith(("consumeStatsList[]", "Table.*"))
        is_map = (is_map and not path.endswith("subscriptionTable.*")) or path.endswith("consumerTable.*")
        is_map = is_map or any(isinstance(key, MessageQueue) for key in value)
        bean = path.endswith(
            ("offsetTable.*", "topicConfigTable.*", "subscriptionGroupTable.*", "mqTable.*", "statusTable.*")
        )
        bean = bean and not any(str(key).isdigit() for key in value)
        for key, item in value.items():
            yield from _walk(f"{path}.{'*' if is_map and not bean else key}", item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(f"{path}[]", item)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "text", dict: "object", list: "list", type(None): "null"}[type(value)]
