"""Base of the requests that are decoded into typed fields: what lanes and responses need of them."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from appliance.remoting.header_fields import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from gantrymq.remoting.command import JSON, ONEWAY_FLAG, RemotingCommand

Int = Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)]
Long = Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)]


class TypedRequest(msgspec.Struct, gc=False, kw_only=True):
    """Has the attributes of RemotingCommand that lanes and responses use. Its header was JSON."""

    code: Long
    opaque: Long
    flag: Long
    version: Long = 0
    body: bytes = b""  # set after decoding, so a "body" key in the header has no effect

    serialize_type: ClassVar[int] = JSON

    @property
    def is_oneway(self) -> bool:
        return self.flag & ONEWAY_FLAG != 0

    def reply(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """Return a response to this request."""
        request = RemotingCommand(self.code, {}, b"", None, self.opaque, self.flag, "", self.version, JSON)
        return request.reply(code, remark, ext_fields, body)
