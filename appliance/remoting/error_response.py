"""Exceptions to responses: expected errors with code and reason, bugs as SYSTEM_ERROR."""

from __future__ import annotations

import logging

from appliance.errors import BrokerError
from gantrymq.errors import BodyError, MessageRejected
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger = logging.getLogger(__name__)

REMARK_CHARS_MAX = 2048


def error_response(request: RemotingCommand, exc: Exception) -> RemotingCommand:
    """Return the response to a request that failed. The only place where an exception becomes a response."""
    if isinstance(exc, BrokerError):  # expected: the client learns code and reason
        return request.reply(exc.code, _clipped(str(exc)), exc.ext_fields)
    if isinstance(exc, BodyError | MessageRejected):
        return request.reply(ResponseCode.INVALID_PARAMETER, _clipped(str(exc)))
    if isinstance(exc, KeyError | ValueError) and (remark := _about_a_field(exc, request)) is not None:
        return request.reply(ResponseCode.INVALID_PARAMETER, remark)
    # a bug: the log gets the traceback, the client only learns that it happened
    logger.error("handler failed", exc_info=exc, extra={"event": "handler_failed", "code": request.code})
    return request.reply(ResponseCode.SYSTEM_ERROR, "system error")


def not_supported(request: RemotingCommand) -> RemotingCommand:
    """Return the response to a request with a code that is not served."""
    return request.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported")


def _about_a_field(exc: KeyError | ValueError, request: RemotingCommand) -> str | None:
    """Return the remark when the error is about an ext field, else None.

    A missing field raises KeyError with its name; a malformed one raises ValueError that quotes its text.
    """
    if isinstance(exc, KeyError):
        name = exc.args[0] if exc.args else None
        is_field = isinstance(name, str) and name not in request.ext_fields
        return f"header field {name} is missing" if is_field else None
    text = str(exc)
    named = [name for name, value in request.ext_fields.items() if repr(value) in text]
    return f"header field {' or '.join(named)} is malformed: {_clipped(text)}" if named else None


def _clipped(remark: str) -> str:
    """Cut a remark: it may quote the peer, and a response must not grow with the size of the request."""
    return remark if len(remark) <= REMARK_CHARS_MAX else f"{remark[:REMARK_CHARS_MAX]}…"
