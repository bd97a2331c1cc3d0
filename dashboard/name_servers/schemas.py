"""What REST takes and gives about the name servers' key-value table."""

from __future__ import annotations

from ninja import Field, Schema

from dashboard.name_servers.form import NAME_CHARS_MAX, VALUE_CHARS_MAX
from dashboard.rest.values import Order


class EntryOut(Schema):
    """A key and its value."""

    key: str
    value: str


class EntryList(Schema):
    """The entries of a namespace, by key; none when there is no such namespace."""

    namespace: str
    entries: list[EntryOut]


class EntryIn(Order):
    """An entry with its value. Another value replaces the one that is there."""

    namespace: str = Field(max_length=NAME_CHARS_MAX, examples=["ORDER_TOPIC_CONFIG"])
    key: str = Field(max_length=NAME_CHARS_MAX, examples=["orders"])
    value: str = Field(max_length=VALUE_CHARS_MAX, examples=["broker-a:4;broker-b:4"])


class EntryChanged(Schema):
    """What an entry was and is. null: there was none, or is none any more."""

    namespace: str
    key: str
    before: str | None
    after: str | None
