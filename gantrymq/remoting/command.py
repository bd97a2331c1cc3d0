"""RemotingCommand: one request or answer, and its two header encodings.

The hot paths of broker and SDK live on this module, so decoding reads the header once, into plain strings, and
encoding is one `orjson.dumps` and one join. Ext fields are always `dict[str, str]` after decoding: clients do send
numbers and booleans there (ali-ons), and they are turned into the text that Java would make of them.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any, ClassVar

import orjson

from gantrymq.errors import FrameError
from gantrymq.remoting.codes import PROTOCOL_VERSION, LanguageCode

JSON = 0
ROCKETMQ = 1

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

LANGUAGE = "PYTHON"

_PREFIX = struct.Struct(">iI")  # total, encoding and header length
_WORD = struct.Struct(">I")
_BINARY_HEAD = struct.Struct(">hBhiii")  # code, language, version, opaque, flag, remark length
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_HEADER_LENGTH_MASK = 0xFFFFFF
_OPAQUE_MASK = 0x7FFFFFFF

_loads = orjson.loads
_count = itertools.count(1).__next__


def next_opaque() -> int:
    """A number for a request of this process that none had before, until 2^31 requests later."""
    return _count() & _OPAQUE_MASK


class RemotingCommand:
    """One frame: a request or an answer.

    code: RequestCode or ResponseCode. ext_fields: the typed header of the code, all values text. body: b"" when there
    is none. opaque: int32 that pairs answer and request. language: name of LanguageCode, or what the peer wrote.
    """

    __slots__ = (
        "body",
        "code",
        "ext_fields",
        "flag",
        "language",
        "opaque",
        "remark",
        "serialize_type",
        "version",
    )

    def __init__(
        self,
        code: int,
        ext_fields: dict[str, str],
        body: bytes,
        remark: str | None,
        opaque: int,
        flag: int,
        language: str,
        version: int,
        serialize_type: int,
    ) -> None:
        self.code: int = code
        self.ext_fields: dict[str, str] = ext_fields
        self.body: bytes = body
        self.remark: str | None = remark
        self.opaque: int = opaque
        self.flag: int = flag
        self.language: str = language
        self.version: int = version
        self.serialize_type: int = serialize_type

    @classmethod
    def request(
        cls,
        code: int,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        serialize_type: int = JSON,
    ) -> RemotingCommand:
        """A new request with its own opaque, unique in this process until 2^31 requests later."""
        opaque = next_opaque()
        return cls(int(code), ext_fields or {}, body, None, opaque, 0, LANGUAGE, PROTOCOL_VERSION, serialize_type)

    def reply(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """The answer to this request: same opaque, same header encoding."""
        return RemotingCommand(
            int(code),
            ext_fields or {},
            body,
            remark,
            self.opaque,
            RESPONSE_FLAG,
            LANGUAGE,
            PROTOCOL_VERSION,
            self.serialize_type,
        )

    @property
    def is_response(self) -> bool:
        """Whether it answers a request."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Whether it is a request that wants no answer."""
        return self.flag & ONEWAY_FLAG != 0

    def mark_oneway(self) -> RemotingCommand:
        """Say that no answer is wanted; returns the command itself."""
        self.flag |= ONEWAY_FLAG
        return self

    # -- encoding -----------------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The whole frame, length included."""
        return self.encode_head(len(self.body)) + self.body

    def encode_head(self, body_bytes: int) -> bytes:
        """The frame up to its body, for a body of `body_bytes` that is written separately."""
        header = self._binary_header() if self.serialize_type == ROCKETMQ else self._json_header()
        return _PREFIX.pack(4 + len(header) + body_bytes, self.serialize_type << 24 | len(header)) + header

    def _json_header(self) -> bytes:
        fields: dict[str, Any] = {"code": self.code}
        if self.ext_fields:
            fields["extFields"] = self.ext_fields
        fields["flag"] = self.flag
        fields["language"] = self.language
        fields["opaque"] = self.opaque
        if self.remark is not None:
            fields["remark"] = self.remark
        fields["serializeTypeCurrentRPC"] = "JSON"
        fields["version"] = self.version
        return orjson.dumps(fields)

    def _binary_header(self) -> bytes:
        language = LanguageCode.__members__.get(self.language, LanguageCode.OTHER)
        remark = self.remark.encode() if self.remark else b""
        pairs: list[bytes] = []
        for key, value in self.ext_fields.items():
            raw_key, raw_value = key.encode(), value.encode()
            pairs += (_INT16.pack(len(raw_key)), raw_key, _INT32.pack(len(raw_value)), raw_value)
        ext = b"".join(pairs)
        head = _BINARY_HEAD.pack(self.code, language, self.version, self.opaque, self.flag, len(remark))
        return b"".join((head, remark, _INT32.pack(len(ext)), ext))

    # -- decoding -----------------------------------------------------------------------------------------------------

    @classmethod
    def decode(cls, frame: bytes) -> RemotingCommand:
        """Read a frame without its four length bytes. Raises FrameError when it can't be one."""
        if len(frame) < 4:
            raise FrameError(f"a frame of {len(frame)} bytes has no header word")
        return cls.decode_at(frame, 0, len(frame))

    @classmethod
    def decode_at(cls, buffer: bytes, start: int, end: int) -> RemotingCommand:
        """Read the frame whose header word stands at `start` and whose last byte stands before `end`."""
        (word,) = _WORD.unpack_from(buffer, start)
        header_start = start + 4
        header_end = header_start + (word & _HEADER_LENGTH_MASK)
        if header_end > end:
            raise FrameError(f"header of {header_end - header_start} bytes in a frame of {end - start}")
        serialize_type = word >> 24
        if serialize_type == JSON:
            return cls._from_json(buffer[header_start:header_end], buffer[header_end:end])
        if serialize_type == ROCKETMQ:
            return cls._from_binary(buffer[header_start:header_end], buffer[header_end:end])
        raise FrameError(f"unknown header encoding {serialize_type}")

    @classmethod
    def _from_json(cls, header: bytes, body: bytes) -> RemotingCommand:
        """The hottest function of the broker: two C calls check what loops over the fields would."""
        try:
            fields = _loads(header)
            code, opaque, flag, version = fields["code"], fields["opaque"], fields["flag"], fields["version"]
            code | opaque | flag | version  # nothing but integers can be or-ed: to the rest no answer could be made
            ext_fields = fields.get("extFields")
            if ext_fields:
                try:
                    "".join(ext_fields.values())  # all texts already?
                except TypeError:
                    ext_fields = _texts(ext_fields)
            else:
                ext_fields = {}
            return cls(code, ext_fields, body, fields.get("remark"), opaque, flag, fields["language"], version, JSON)
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as exc:
            return cls._from_sparse_json(header, body, exc)

    @classmethod
    def _from_sparse_json(cls, header: bytes, body: bytes, why: Exception) -> RemotingCommand:
        """A header that leaves out what every known client writes. Raises FrameError when it is no header at all."""
        try:
            fields = {"code": 0, "opaque": 0, "flag": 0, "version": 0, "language": "OTHER"} | _loads(header)
            numbers = [_integer(fields[name]) for name in ("code", "opaque", "flag", "version")]
            ext_fields = _texts(fields.get("extFields") or {})
        except (orjson.JSONDecodeError, AttributeError, TypeError):
            raise FrameError(f"header is not a JSON object of the protocol: {why}") from why
        except ValueError:
            raise FrameError("code, opaque, flag and version must be integers") from None
        code, opaque, flag, version = numbers
        language = str(fields["language"] or "OTHER")
        return cls(code, ext_fields, body, fields.get("remark"), opaque, flag, language, version, JSON)

    @classmethod
    def _from_binary(cls, header: bytes, body: bytes) -> RemotingCommand:
        try:
            code, language, version, opaque, flag, remark_bytes = _BINARY_HEAD.unpack_from(header)
            position = _BINARY_HEAD.size
            remark = _text(header, position, remark_bytes) or None
            position += remark_bytes
            (ext_bytes,) = _INT32.unpack_from(header, position)
            position += 4
            if ext_bytes < 0 or position + ext_bytes > len(header):
                raise FrameError(f"ext fields of {ext_bytes} bytes run past the header")
            ext_fields = _binary_ext_fields(header, position, position + ext_bytes)
        except (struct.error, UnicodeDecodeError) as exc:
            raise FrameError(f"binary header: {exc}") from exc
        name = LanguageCode(language).name if language < len(LanguageCode) else "OTHER"
        return cls(code, ext_fields, body, remark, opaque, flag, name, version, ROCKETMQ)

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "oneway" if self.is_oneway else "request"
        return f"<{kind} code={self.code} opaque={self.opaque} ext={self.ext_fields} body={len(self.body)} B>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RemotingCommand):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable: none, as Python has it beside an __eq__


def _integer(value: Any) -> int:
    """A number of the header as Java would read it: 7, 7.0, "7" and "7e0" are the same. ValueError."""
    if isinstance(value, str):
        value = int(value) if value.lstrip("+-").isdecimal() else float(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    number = int(value) if isinstance(value, int | float) else None
    if number is None or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(value)
    return number


def _texts(ext_fields: dict[str, Any]) -> dict[str, str]:
    """Ext fields as Java would read them: true is "true", 0 is "0", null is absent."""
    texts: dict[str, str] = {}
    for key, value in ext_fields.items():
        if isinstance(value, str):
            texts[key] = value
        elif isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif value is not None:
            texts[key] = str(value) if isinstance(value, int | float) else orjson.dumps(value).decode()
    return texts


def _binary_ext_fields(header: bytes, position: int, end: int) -> dict[str, str]:
    ext_fields: dict[str, str] = {}
    while position < end:
        (key_bytes,) = _INT16.unpack_from(header, position)
        key = _text(header, position + 2, key_bytes)
        position += 2 + key_bytes
        (value_bytes,) = _INT32.unpack_from(header, position)
        value = _text(header, position + 4, value_bytes)
        position += 4 + value_bytes
        if position > end:
            raise FrameError("an ext field runs past the ext fields")
        if value:  # Java can't tell an empty value from an absent one
            ext_fields[key] = value
    return ext_fields


def _text(header: bytes, start: int, length: int) -> str:
    if length < 0 or start + length > len(header):
        raise FrameError(f"a text of {length} bytes runs past the header")
    return header[start : start + length].decode()
