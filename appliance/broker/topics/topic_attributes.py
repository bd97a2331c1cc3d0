"""Changes to a topic's attributes, as 17 and 18 bring them: read, checked, and merged with those it has."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.errors import BrokerError
from gantrymq.message.topic_attributes import RULES, wrong_value
from gantrymq.remoting.codes import ResponseCode

ATTRIBUTES_MAX = 32


def read_attributes(text: str) -> dict[str, str]:
    """The changes that 17's ext field `attributes` asks for: "+name=value,-name", as RocketMQ 5 writes it."""
    changes: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, separator, value = part.partition("=")
        if part[0] not in "+-" or (part[0] == "+") != bool(separator) or not name[1:].strip():
            raise _refused(f"attributes: {part!r} is neither +name=value nor -name")
        changes[name] = value
    return changes


def merged_attributes(
    known: Mapping[str, str] | None, changes: Mapping[str, str] | None, *, is_new: bool = True
) -> dict[str, str] | None:
    """A topic's attributes after changes ("+name", "name": set; "-name": removed). BrokerError for what can't be.

    is_new: the topic is being made, so that it may get what never changes later.
    """
    attributes = dict(known or {})
    for name, value in (changes or {}).items():
        plain = name.removeprefix("+").removeprefix("-")
        after = None if name.startswith("-") else value
        if attributes.get(plain) == after:
            continue
        rule = RULES.get(plain)
        if not is_new and rule is not None and not rule.is_changeable:
            raise _refused(f"attribute {plain} can't be changed: it is set when the topic is made")
        if after is None:
            del attributes[plain]
            continue
        if rule is None and plain not in attributes:
            raise _refused(f"attribute {plain} is not known here; known are {', '.join(sorted(RULES))}")
        if rule is not None and (why := wrong_value(plain, after)) is not None:
            raise _refused(why)
        attributes[plain] = after
    if len(attributes) > ATTRIBUTES_MAX:
        raise _refused(f"{len(attributes)} attributes: use up to {ATTRIBUTES_MAX}")
    return attributes or None


def _refused(why: str) -> BrokerError:
    return BrokerError(ResponseCode.INVALID_PARAMETER, why)
