"""A request's id: in its answer, in each log line that is written for it, and in the entries of the audit log.

A program, or a proxy in front, may send its own as X-Request-ID; one that is not well-formed is replaced and not cut:
what stands in a log is either as the sender wrote it or made here.
"""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

from dashboard.http.middleware import AsyncMiddleware

HEADER = "X-Request-ID"
ID_MAX = 64
WELL_FORMED = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:-]{{0,{ID_MAX - 1}}}")

_current: ContextVar[str] = ContextVar("request_id", default="")


def request_id() -> str:
    """The id of the request that this task or thread works for; "" for the process's own work."""
    return _current.get()


class RequestIds(AsyncMiddleware):
    """The first of all, so that no answer and no line goes without."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        known = given if WELL_FORMED.fullmatch(given) else uuid.uuid4().hex
        _current.set(known)  # not taken back: an answer may be streamed, and each request has a context of its own
        response: HttpResponseBase = await self.get_response(request)
        response.headers[HEADER] = known
        return response
