"""Where exceptions become answers, and nowhere else: the client is told which and why, or that it was our fault."""

from __future__ import annotations

import logging

from appliance.errors import BrokerError
from gantrymq.errors import BodyError, MessageRejected
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

REMARK_CHARS_MAX = 2048


def failure_answer(request: RemotingCommand, exc: Exception) -> RemotingCommand:
    """The only place where an exception becomes an answer."""
    if isinstance(exc, BrokerError):  # expected: the client is told which and why
        return request.reply(exc.code, _clipped(str(exc)))
    if isinstance(exc, BodyError | MessageRejected):
        return request.reply(ResponseCode.INVALID_PARAMETER, _clipped(str(exc)))
    if isinstance(exc, KeyError | ValueError) and (remark := _about_a_field(exc, request)) is not None:
        return request.reply(ResponseCode.INVALID_PARAMETER, remark)
    # a bug: told to us in full, to the client in a word
    logger.error("handler failed", exc_info=exc, extra={"event": "handler_failed", "code": request.code})
    return request.reply(ResponseCode.SYSTEM_ERROR, "system error")


def _about_a_field(exc: KeyError | ValueError, request: RemotingCommand) -> str | None:
    """A missing ext field raises KeyError with its name; a malformed one raises ValueError that quotes its text."""
    if isinstance(exc, KeyError):
        name = exc.args[0] if exc.args else None
        is_field = isinstance(name, str) and name not in request.ext_fields
        return f"header field {name} is missing" if is_field else None
    text = str(exc)
    named = [name for name, value in request.ext_fields.items() if repr(value) in text]
    return f"header field {' or '.join(named)} is malformed: {_clipped(text)}" if named else None


def _clipped(remark: str) -> str:
    """Remarks quote what peers wrote; nobody shall be sent much more than he asked."""
    return remark if len(remark) <= REMARK_CHARS_MAX else f"{remark[:REMARK_CHARS_MAX]}…"
