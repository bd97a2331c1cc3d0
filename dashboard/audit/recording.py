"""Writes down each request that changed something, or was not allowed to.

Views say what they did (notes.py). A request with a writing method whose view says nothing is written down by its
address: no change goes unseen because a line was forgotten.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseBase

from dashboard.access.permissions import Principal
from dashboard.audit.chain import Change, append
from dashboard.audit.notes import notes_of, trouble_of
from dashboard.http.client_address import client_address
from dashboard.http.middleware import AsyncMiddleware
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Result, Way

logger = logging.getLogger(__name__)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class AuditMiddleware(AsyncMiddleware):
    """Stands around all that finds out who asks, and after what guards the database."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self.get_response(request)
        changes = changes_of(request, response)
        if changes:
            try:
                await sync_to_async(append)(changes)
            except DatabaseError as exc:
                for change in changes:  # at least here
                    facts = {"event": "audit_not_written", "username": change.who, "action": change.action}
                    logger.error(
                        "change not recorded",
                        extra=facts | {"target": change.target, "result": change.result, "error": str(exc)},
                    )
        return response


def changes_of(request: HttpRequest, response: HttpResponseBase) -> list[Change]:
    """What to write down about a request that was answered."""
    noted = notes_of(request)
    principal = _principal(request)
    who, way = _name(principal), Way.REST if request.path.startswith("/api/") else Way.PAGE
    address = client_address(request)
    if noted is not None:
        return [
            Change(who=one.who or who, way=way, address=address, action=one.action, target=one.target,
                   details=one.details, request_id=request_id())
            for one in noted
        ]  # fmt: skip
    if request.method in SAFE_METHODS or principal is None:
        return []  # who is no account changes nothing; log-ins say so themselves
    if trouble := trouble_of(request):
        result, told = Result.FAILED, trouble
    elif response.status_code < HTTPStatus.BAD_REQUEST:
        result, told = Result.DONE, ""
    elif response.status_code == HTTPStatus.FORBIDDEN:
        result, told = Result.REFUSED, "the role or the token does not allow this"
    elif response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        result, told = Result.FAILED, f"answered with {response.status_code}: it may be partly done"
    else:
        return []  # a form with a mistake in it
    match = request.resolver_match
    target = ", ".join(str(value) for value in match.kwargs.values()) if match is not None else ""
    action = f"{request.method} {match.url_name if match is not None else request.path}"
    return [
        Change(who=who, way=way, address=address, action=action, target=target, result=result, told=told,
               request_id=request_id())
    ]  # fmt: skip


def _principal(request: HttpRequest) -> Principal | None:
    """The request's; REST operations have checked theirs themselves."""
    found = getattr(request, "auth", None) or getattr(request, "principal", None)
    return found if isinstance(found, Principal) else None


def _name(principal: Principal | None) -> str:
    if principal is None:
        return ""
    token = f" (token {principal.token.prefix}…)" if principal.token is not None else ""
    return f"{principal.user.username}{token}"
