"""The header of a pull: like a send's it is decoded thousands of times a second, and most fields are numbers."""

from __future__ import annotations

import msgspec

from appliance.remoting.header_fields import int_field, long_field, text_field
from appliance.remoting.typed_request import Int, Long, TypedRequest


class PullFields(msgspec.Struct, gc=False):
    """Ext fields of 11 and 361; see the spec's codes.csv. Fields that only some pulls need are converted on demand."""

    group: str = msgspec.field(name="consumerGroup")
    topic: str = msgspec.field(name="topic")
    queue_id: Int = msgspec.field(name="queueId")
    queue_offset: Long = msgspec.field(name="queueOffset")
    count_max: Int = msgspec.field(name="maxMsgNums")
    sys_flag: Int = msgspec.field(name="sysFlag")
    subscription: str = msgspec.field(name="subscription", default="")
    expression_type: str | None = msgspec.field(name="expressionType", default=None)
    commit_offset_text: str | None = msgspec.field(name="commitOffset", default=None)
    suspend_text: str | None = msgspec.field(name="suspendTimeoutMillis", default=None)
    sub_version_text: str | None = msgspec.field(name="subVersion", default=None)

    @classmethod
    def of(cls, texts: dict[str, str]) -> PullFields:
        """Convert ext fields given as texts. Raises FieldError, which names the missing or malformed field."""
        return cls(
            text_field(texts, "consumerGroup"),
            text_field(texts, "topic"),
            int_field(texts, "queueId"),
            long_field(texts, "queueOffset"),
            int_field(texts, "maxMsgNums"),
            int_field(texts, "sysFlag"),
            texts.get("subscription", ""),
            texts.get("expressionType"),
            texts.get("commitOffset"),
            texts.get("suspendTimeoutMillis"),
            texts.get("subVersion"),
        )

    @property
    def commit_offset(self) -> int:
        """The queue offset up to which the group has consumed. Raises FieldError."""
        return _long("commitOffset", self.commit_offset_text, low=-1)

    @property
    def suspend_ms(self) -> int:
        """How long the pull may wait. Raises FieldError."""
        return _long("suspendTimeoutMillis", self.suspend_text)

    @property
    def sub_version(self) -> int:
        """The version of the subscription on which the pull is based. Raises FieldError."""
        return _long("subVersion", self.sub_version_text)


class PullRequest(TypedRequest, gc=False, kw_only=True):
    """A pull as received."""

    fields: PullFields = msgspec.field(name="extFields")

    @property
    def ext_fields(self) -> dict[str, str]:
        """The fields as texts, for messages about them."""
        return {name: str(value) for name, value in msgspec.to_builtins(self.fields).items() if value is not None}


def _long(name: str, text: str | None, **limits: int) -> int:
    return long_field({name: text} if text is not None else {}, name, **limits)
