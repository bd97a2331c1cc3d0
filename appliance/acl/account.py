"""One account of plain_acl.yml, and its permissions.

Permissions are RocketMQ's: DENY, PUB, SUB, PUB|SUB for topics by name and for consumer groups by name, and a default
for each. A group's permission also holds for its retry and dead-letter topics. An administrator without listed
permissions may do everything; one with listed permissions may use the administrator's request codes and the listed
topics and groups.

The defaults don't hold for RocketMQ's own topics with messages of other topics (delayed ones, half messages, traces,
replies): SUB on them must be listed by name, or a default of SUB would give access to messages of every topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from appliance.acl.address import AddressPatternError, Matches, compile_pattern
from gantrymq.errors import GantryError
from gantrymq.message.topics import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    DLQ_PREFIX,
    REPLY_TOPIC_POSTFIX,
    RETRY_PREFIX,
    TRACE_TOPIC,
    is_system_topic,
)
from gantrymq.remoting.signature import KEY_CHARS_MIN, SigningKey

DENY, ANY, PUB, SUB = 1, 2, 4, 8

PERMISSIONS = {"DENY": DENY, "PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB}
_TRUE = frozenset({"true", "yes", "on"})  # of YAML 1.1, as RocketMQ's parser


class AccountError(GantryError):
    """An account's fields are invalid. The text never contains a secret."""


@dataclass(frozen=True, slots=True)
class Account:
    """Built by read_account; trusted after. Permissions are bits of DENY, PUB, SUB."""

    access_key: str
    key: SigningKey = field(repr=False)
    is_admin: bool = False
    default_topic: int = DENY
    default_group: int = DENY
    topics: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    is_white: Matches = field(default=lambda address: False, repr=False)
    requires_stamp: bool | None = None  # None: as in the broker's settings

    @property
    def may_everything(self) -> bool:
        return self.is_admin and not self.topics and not self.groups

    def may_topic(self, topic: str, need: int) -> bool:
        """Whether the account has the permission on a topic; a retry or dead-letter topic counts as its group."""
        owned = self.topics.get(topic)
        if owned is None:
            group = group_of(topic)
            if group is not None:
                return self.may_group(group)
            if self.may_everything or (need == PUB and topic == TRACE_TOPIC):
                return True
            if need != PUB and holds_other_topics(topic):
                return False
            owned = self.default_topic
        return _has(owned, need)

    def may_group(self, group: str) -> bool:
        """Whether the account may consume as a member of the group."""
        return self.may_everything or _has(self.groups.get(group, self.default_group), SUB)


def group_of(topic: str) -> str | None:
    """The group whose retry or dead-letter topic this is, None for all other topics."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return None


def holds_other_topics(topic: str) -> bool:
    """Whether the topic holds messages of other topics, or data about them."""
    if topic.endswith(REPLY_TOPIC_POSTFIX):
        return True
    return is_system_topic(topic) and topic not in (BENCHMARK_TOPIC, AUTO_CREATE_TOPIC)


def _has(owned: int, need: int) -> bool:
    if owned & DENY:
        return False
    return bool(owned & (PUB | SUB if need == ANY else need))


# -- from the file ----------------------------------------------------------------------------------------------------


def read_account(fields: Mapping[str, Any]) -> Account:
    """The account that a mapping of plain_acl.yml describes; all scalars are texts. Raises AccountError."""
    access_key, secret_key = text_of(fields, "accessKey"), text_of(fields, "secretKey")
    check_keys(access_key, secret_key)
    try:
        is_white = compile_pattern(text_of(fields, "whiteRemoteAddress"))
    except AddressPatternError as exc:
        raise AccountError(f"accessKey={access_key}: whiteRemoteAddress {exc}") from exc
    groups = read_permissions(list_of(fields, "groupPerms"), "group")
    topics = {}
    for name, permission in read_permissions(list_of(fields, "topicPerms"), "topic").items():
        if name.startswith(RETRY_PREFIX):  # another spelling of a group
            groups.setdefault(name[len(RETRY_PREFIX) :], permission)
        else:
            topics[name] = permission
    stamp = text_of(fields, "requireStamp")
    return Account(
        access_key,
        SigningKey(secret_key),
        is_true(fields, "admin"),
        PERMISSIONS.get(text_of(fields, "defaultTopicPerm"), DENY),
        PERMISSIONS.get(text_of(fields, "defaultGroupPerm"), DENY),
        topics,
        groups,
        is_white,
        stamp.lower() in _TRUE if stamp else None,
    )


def check_keys(access_key: str, secret_key: str) -> None:
    """Raise AccountError, with RocketMQ's own text, unless both keys are long enough."""
    if len(access_key) < KEY_CHARS_MIN or len(secret_key) < KEY_CHARS_MIN:
        raise AccountError(
            f"The accessKey={access_key} and secretKey=*** cannot be null and length should longer than 6"
        )


def read_permissions(entries: list[str], what: str) -> dict[str, int]:
    """Parse "name=PUB|SUB" entries. Raises AccountError; an unknown permission is DENY, as in RocketMQ."""
    permissions = {}
    for entry in entries:
        parts = [part.strip() for part in entry.split("=") if part]
        if len(parts) != 2:
            raise AccountError(f"Parse resource permission failed for {what}:{entry}")
        permissions[parts[0]] = PERMISSIONS.get(parts[1], DENY)
    return permissions


def check_permissions(entries: list[str]) -> None:
    """Check the entries of a request before they are written. Raises AccountError with RocketMQ's own text."""
    for entry in entries:
        parts = [part for part in entry.split("=") if part]
        if len(parts) != 2:
            raise AccountError(
                f"Parse Resource format error for {entry}.\n"
                "The expected resource format is 'Res=Perm'. For example: topicA=SUB"
            )
        if parts[1].strip() not in PERMISSIONS:
            raise AccountError(
                f"Parse resource permission error for {entry}.\n"
                "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
            )


def text_of(fields: Mapping[str, Any], name: str) -> str:
    """A scalar without surrounding blanks; "" when it is absent. Raises AccountError for a list or mapping."""
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AccountError(f"{name} is not a single value")
    return value.strip()


def list_of(fields: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts; [] when it is absent or empty. Raises AccountError."""
    value = fields.get(name)
    if value is None or value == "":
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise AccountError(f"{name} is not a list of texts")
    return value


def is_true(fields: Mapping[str, Any], name: str) -> bool:
    return text_of(fields, name).lower() in _TRUE
