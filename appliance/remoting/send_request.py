"""The header of a send: a dozen short texts, most of them numbers, as a struct with integers.

Building a dictionary of texts and converting each costs more than storing the message.
"""

from __future__ import annotations

import msgspec

from appliance.remoting.header_fields import FieldError, quoted
from appliance.remoting.typed_request import Int, Long, TypedRequest


class SendFields(msgspec.Struct, gc=False):
    """Ext fields of 310 and 320 (10 has the same under long names); see the spec's codes.csv."""

    topic: str = msgspec.field(name="b")
    queue_id: Int = msgspec.field(name="e")
    sys_flag: Int = msgspec.field(name="f")
    born_timestamp: Long = msgspec.field(name="g")
    flag: Int = msgspec.field(name="h")
    properties: str = msgspec.field(name="i", default="")
    reconsume_times: Int = msgspec.field(name="j", default=0)
    batch: str = msgspec.field(name="m", default="false")
    default_topic: str = msgspec.field(name="c", default="")
    default_topic_queue_nums: Int = msgspec.field(name="d", default=4)
    max_reconsume_times: Int | None = msgspec.field(name="l", default=None)
    unit_mode: str = msgspec.field(name="k", default="false")

    @property
    def is_unit(self) -> bool:
        """Whether the client runs in unit mode: topics that it creates are marked."""
        return self.unit_mode.lower() == "true"

    @classmethod
    def of(cls, fields: dict[str, str]) -> SendFields:
        """Convert ext fields given as texts. Raises FieldError, which names the missing or malformed field."""
        is_short = "b" in fields or "e" in fields
        texts = fields if is_short else {short: fields[name] for name, short in _SHORT_OF.items() if name in fields}
        try:
            return _convert(texts, SendFields, strict=False)
        except msgspec.ValidationError as exc:
            raise _field_error(texts, is_short, exc) from exc


_SHORT_OF = {
    "topic": "b",
    "defaultTopic": "c",
    "defaultTopicQueueNums": "d",
    "queueId": "e",
    "sysFlag": "f",
    "bornTimestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsumeTimes": "j",
    "unitMode": "k",
    "maxReconsumeTimes": "l",
    "batch": "m",
}
_LONG_OF = {short: name for name, short in _SHORT_OF.items()}
_REQUIRED = ("b", "e", "f", "g", "h")


def _field_error(texts: dict[str, str], is_short: bool, exc: msgspec.ValidationError) -> FieldError:
    """Translate msgspec's error, which names `$.e`, to the name that the client used, such as queueId."""
    absent = [short for short in _REQUIRED if short not in texts]
    what, _, place = str(exc).partition(" - at `$.")
    short = absent[0] if absent else place.rstrip("`")
    name = short if is_short else _LONG_OF.get(short, short)
    if absent:
        return FieldError(f"header field {name} is missing")
    return FieldError(f"header field {name}={quoted(texts.get(short, ''))}: {what}")


class SendRequest(TypedRequest, gc=False, kw_only=True):
    """A send as received."""

    fields: SendFields = msgspec.field(name="extFields")

    @property
    def ext_fields(self) -> dict[str, str]:
        """The fields as texts, for messages about them."""
        return {name: str(value) for name, value in msgspec.to_builtins(self.fields).items()}


class SignedSend(SendRequest, gc=False, kw_only=True):
    """A send with all its ext fields as texts too, because the signature covers these."""

    texts: dict[str, str] = {}  # set after decoding

    @property
    def ext_fields(self) -> dict[str, str]:
        return self.texts


_convert = msgspec.convert
