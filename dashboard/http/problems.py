"""Refusals for programs: problem documents (RFC 9457), whichever part of the dashboard refuses."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from dashboard.http.middleware import AsyncMiddleware
from dashboard.http.phrases import phrase_of

MEDIA_TYPE = "application/problem+json"
KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")


def problem_document(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """The members that RFC 9457 names; `type` is about:blank, so `title` is HTTP's own phrase for the status."""
    return {"type": "about:blank", "title": phrase_of(status), "status": status, "detail": detail, **more}


def problem(status: int, detail: str, **more: Any) -> HttpResponse:
    """A refusal as an answer."""
    body = json.dumps(problem_document(status, detail, **more), ensure_ascii=False)
    return HttpResponse(body, status=status, content_type=MEDIA_TYPE)


class ProblemMiddleware(AsyncMiddleware):
    """Below /api/ every refusal is a problem document: also those of Django and of the REST library themselves."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        is_refusal = response.status_code >= HTTPStatus.BAD_REQUEST and request.path.startswith("/api/")
        if not is_refusal or response.headers.get("Content-Type") == MEDIA_TYPE:
            return response
        told = problem(response.status_code, _detail(request, response))
        for name in KEPT_HEADERS:
            if name in response.headers:
                told.headers[name] = response.headers[name]
        return told


def _detail(request: HttpRequest, response: HttpResponseBase) -> str:
    """The sentence of a refusal that is none yet."""
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"{request.method} is not for this address; {response.headers.get('Allow', 'other methods')} may be."
    try:
        said = json.loads(getattr(response, "content", b""))["detail"]
    except (ValueError, TypeError, KeyError):
        said = None
    sentence = said if isinstance(said, str) else phrase_of(response.status_code)
    return sentence if sentence.endswith(".") else f"{sentence}."
