"""Authorisation: permissions, the roles that have them, and the check of every request.

A view declares its permission with `@requires(...)`; `AccessMiddleware` refuses requests for a view without one, so a
forgotten declaration is noticed and not a hole. Pages, REST and sockets use the same table (`ROLE_PERMISSIONS`).

Each request has a `Principal`: an account, by its session cookie, or an account with a narrower scope, by an API token.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.contrib.auth import alogout, get_user
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from dashboard.access.tokens import find_token
from dashboard.cluster.errors import GatewayError
from dashboard.http.error_pages import error_card, gateway_error, not_found
from dashboard.http.middleware import AsyncMiddleware
from dashboard.http.problems import problem
from dashboard.language.choice import speak
from dashboard.limits.names import NO_LIMIT, NameLimit, NameRefused, current, use
from dashboard.models.management import ApiToken, Role, User
from gantrymq.log_limit import LogLimit

SESSION_LIFE_S = 7 * 86400  # a session ends then even if it was never idle
SESSION_TOUCH_S = 300  # how often the idle limit is pushed on (each push is a write to the database)
SESSION_STARTED = "started_at"
SESSION_TOUCHED = "touched_at"
HOST_CHARS_LOGGED = 100

logger = logging.getLogger(__name__)
_log_limit = LogLimit()
SESSION_ADDRESS = "address"


class Permission(StrEnum):
    """The permissions that a view, a REST operation or a socket subscription may require."""

    OPEN = "open"  # no log-in needed: log-in, first run, static files, health
    ACCOUNT = "account"  # every logged-in user: log-out, own API tokens
    CLUSTER_READ = "cluster.read"
    METRICS_READ = "metrics.read"
    TOPICS_READ = "topics.read"
    TOPICS_WRITE = "topics.write"
    GROUPS_READ = "groups.read"
    GROUPS_WRITE = "groups.write"
    CLIENTS_WRITE = "clients.write"
    CONFIG_READ = "config.read"
    CONFIG_WRITE = "config.write"
    MESSAGES_READ = "messages.read"
    MESSAGES_SEND = "messages.send"
    SEARCHES_WRITE = "searches.write"  # each account's own
    REPORTS_READ = "reports.read"
    REPORTS_RUN = "reports.run"
    USERS_WRITE = "users.write"
    AUDIT_READ = "audit.read"
    ALARMS_WRITE = "alarms.write"


_READER = frozenset(
    {
        Permission.ACCOUNT,
        Permission.CLUSTER_READ,
        Permission.METRICS_READ,
        Permission.TOPICS_READ,
        Permission.GROUPS_READ,
        Permission.MESSAGES_READ,
        Permission.SEARCHES_WRITE,
        Permission.REPORTS_READ,
    }
)
_OPERATOR = _READER | {
    Permission.TOPICS_WRITE,
    Permission.GROUPS_WRITE,
    Permission.CLIENTS_WRITE,
    Permission.MESSAGES_SEND,
    Permission.REPORTS_RUN,
    Permission.AUDIT_READ,
    Permission.ALARMS_WRITE,
}
_CONFIG = frozenset({Permission.CONFIG_READ, Permission.CONFIG_WRITE})
ROLE_PERMISSIONS: dict[str, frozenset[Permission]] = {
    Role.READER: _READER,
    Role.OPERATOR: _OPERATOR,
    Role.ADMIN: _OPERATOR | _CONFIG | {Permission.USERS_WRITE},
}
# What an account that is limited to some names may do at most: all else shows the whole cluster.
ABOUT_NAMES = frozenset(
    {
        Permission.ACCOUNT,
        Permission.TOPICS_READ,
        Permission.TOPICS_WRITE,
        Permission.GROUPS_READ,
        Permission.GROUPS_WRITE,
        Permission.MESSAGES_READ,
        Permission.MESSAGES_SEND,
        Permission.SEARCHES_WRITE,
    }
)
# The most that a token may do; it never has more permissions than its account. Tokens and accounts are managed by
# tokens of the scope that says so, and by no other.
SCOPE_PERMISSIONS: dict[str, frozenset[Permission]] = {
    ApiToken.Scope.METRICS: frozenset({Permission.METRICS_READ}),
    ApiToken.Scope.READ: _READER - {Permission.ACCOUNT, Permission.SEARCHES_WRITE},
    ApiToken.Scope.WRITE: _OPERATOR - {Permission.ACCOUNT},
    ApiToken.Scope.CONFIG: (_OPERATOR | _CONFIG) - {Permission.ACCOUNT},
    ApiToken.Scope.ADMIN: _OPERATOR | _CONFIG | {Permission.USERS_WRITE},
}


@dataclass(frozen=True, slots=True)
class Principal:
    """The account of a request, with its permissions."""

    user: User
    permissions: frozenset[Permission]
    token: ApiToken | None = None
    names: NameLimit = NO_LIMIT

    def may(self, permission: Permission | str) -> bool:
        return permission in self.permissions

    @property
    def rights(self) -> tuple[frozenset[Permission], NameLimit]:
        """What a stream that was opened with them looks at again."""
        return self.permissions, self.names


def principal_of(user: Any, token: ApiToken | None = None) -> Principal | None:
    """The principal of an account, narrowed by a token's scope; None without an account, or for a closed one."""
    if not isinstance(user, User) or not user.is_active:
        return None
    permissions = ROLE_PERMISSIONS.get(user.role, frozenset())
    if token is not None:
        permissions &= SCOPE_PERMISSIONS.get(token.scope, frozenset())
    names = NameLimit(user.prefixes)
    if names.is_limited:
        permissions &= ABOUT_NAMES
    return Principal(user, permissions, token, names)


def enter(principal: Principal, permission: Permission, parts: Mapping[str, Any]) -> None:
    """Begin to work for the account. Raises NameRefused when the address names what it may not see.

    parts: of the address; `name` is a topic's or a group's wherever the permission is about those.
    """
    use(principal.names)
    if permission in ABOUT_NAMES and "name" in parts and not principal.names.allows(str(parts["name"])):
        raise principal.names.refusal()


LOOK = ("GET", "HEAD")
ACT = ("POST",)
FORM = (*LOOK, *ACT)
View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


def requires(permission: Permission, methods: tuple[str, ...] = LOOK, *, token: bool = False) -> Callable[[View], View]:
    """Declare the permission and the methods of a view; what the cluster could not do becomes an error page.

    token=True: an API token is accepted as well as a session.
    """

    def mark(view: View) -> View:
        checked = require_http_methods(list(methods))(view)

        @functools.wraps(view)
        async def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                return await checked(request, *args, **kwargs)
            except GatewayError as exc:
                return gateway_error(request, exc)

        shown.permission = permission  # type: ignore[attr-defined]
        shown.takes_token = token  # type: ignore[attr-defined]
        return shown

    return mark


class AccessMiddleware(AsyncMiddleware):
    """Finds the principal of each request and checks the view's permission; a view without one is refused."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            request.get_host()
        except DisallowedHost:  # before anything is looked up
            return unknown_host(request)
        before = current()
        response: HttpResponseBase = await self.get_response(request)
        if not response.streaming:
            use(before)  # what comes next in this task is not this account's
        is_unknown_address = response.status_code == 404 and not hasattr(request, "principal")
        if is_unknown_address and not _is_api(request) and not request.path.startswith(settings.STATIC_URL):
            request.principal = await self._principal(request, takes_token=False)  # type: ignore[attr-defined]
            return not_found(request, Http404())  # once more, with the frame of who is logged in
        return response

    async def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        permission = getattr(view, "permission", None)
        if permission is None:
            return forbidden(request, gettext("This address has no declared permission, so it can't be used."))
        if getattr(view, "is_static", False):
            return None
        principal = await self._principal(request, takes_token=getattr(view, "takes_token", False))
        request.principal = principal  # type: ignore[attr-defined]
        if permission is Permission.OPEN:
            return None
        if principal is None:
            return _ask_to_log_in(request)
        if not principal.may(permission):
            if principal.names.is_limited and request.path == reverse("overview"):
                return redirect("topics")  # the page that such an account begins with
            return forbidden(request, _why_not(principal))
        try:
            enter(principal, permission, kwargs)
        except NameRefused as exc:
            return forbidden(request, str(exc))
        return None

    async def _principal(self, request: HttpRequest, *, takes_token: bool) -> Principal | None:
        if takes_token and "Authorization" in request.headers:
            request.user = AnonymousUser()
            found = await bearer_principal(request)
            if found is not None:
                request.user = found.user
            return found
        user = await request.auser()
        if user.is_authenticated and not await _keep_session(request):
            await alogout(request)
            user = AnonymousUser()
        request.user = user  # type: ignore[assignment]  # resolved now: templates can't wait for the database
        principal = principal_of(user)
        if principal is not None:
            speak(request, principal.user.language)
        return principal


async def bearer_principal(request: HttpRequest) -> Principal | None:
    """The principal of the `Authorization: Bearer ...` header, None when there is none or it opens nothing."""
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or not secret.strip():
        return None
    token = await find_token(secret.strip())
    return None if token is None else principal_of(token.user, token)


class _SessionHolder:
    """What django.contrib.auth.get_user looks at."""

    def __init__(self, session: Any) -> None:
        self.session = session


def account_of_session(session_key: str | None) -> Principal | None:
    """The account of a session, None when that is over. Blocking. get_user also notices a changed password."""
    if not session_key:
        return None
    session = SessionStore(session_key)
    if not session.exists(session_key) or time.time() - session.get(SESSION_STARTED, 0) > SESSION_LIFE_S:
        return None
    return principal_of(get_user(_SessionHolder(session)))  # type: ignore[arg-type]


def start_session_clock(session: Any, address: str) -> None:
    """Note when a session began, and from where; log-in and first run call this."""
    session[SESSION_STARTED] = session[SESSION_TOUCHED] = int(time.time())
    session[SESSION_ADDRESS] = address


async def _keep_session(request: HttpRequest) -> bool:
    """False when the session is over its absolute age. Pushes the idle limit on, but not at every request."""
    now = int(time.time())
    started = await request.session.aget(SESSION_STARTED, 0)
    if now - started > SESSION_LIFE_S:
        return False
    if now - await request.session.aget(SESSION_TOUCHED, 0) > SESSION_TOUCH_S:
        await request.session.aset(SESSION_TOUCHED, now)
    return True


def _is_api(request: HttpRequest) -> bool:
    """Whether a program asks, which no log-in page would help."""
    return request.path.startswith("/api/") or request.path == "/metrics"


def _ask_to_log_in(request: HttpRequest) -> HttpResponseBase:
    """401 for programs and fragments, the log-in page for people."""
    if _is_api(request):
        response = problem(401, gettext("Log in, or send a valid API token."))
        response.headers["WWW-Authenticate"] = "Bearer"
        return response
    if request.headers.get("HX-Request"):
        return HttpResponse(
            gettext("Your session has ended."), status=401, headers={"HX-Redirect": reverse(settings.LOGIN_URL)}
        )
    target = request.get_full_path() if request.method == "GET" else ""
    login = reverse(settings.LOGIN_URL)
    return redirect(f"{login}?{urlencode({'next': target})}" if target not in ("", "/") else login)


def _why_not(principal: Principal) -> str:
    if principal.names.is_limited:
        return gettext("%(names)s Pages about the whole cluster are closed to it.") % {
            "names": principal.names.refusal()
        }
    return gettext("Your role (%(user)s) does not allow this.") % {"user": principal.user.get_role_display()}


def unknown_host(request: HttpRequest) -> HttpResponseBase:
    """400 for an unknown Host, with one short log line (a few for each address) instead of Django's traceback."""
    address = request.META.get("REMOTE_ADDR") or "unknown"
    left_out = _log_limit.left_out("host_refused", address)
    if left_out is not None:
        host = request.META.get("HTTP_HOST", "")[:HOST_CHARS_LOGGED]
        facts = {"event": "host_refused", "host": host, "address": address}
        logger.warning("unknown host rejected", extra=facts | ({"left_out": left_out} if left_out else {}))
    reason = gettext("This dashboard does not answer to this host name.")
    if _is_api(request):
        response = problem(400, reason)
    else:
        response = error_card(
            request, 400, gettext("Unknown host name"), reason, gettext("Ask the administrator to allow this name.")
        )
    response._has_been_logged = True  # type: ignore[attr-defined]  # or Django would add lines of its own
    return response


def forbidden(request: HttpRequest, reason: str) -> HttpResponseBase:
    """403 with the reason."""
    if _is_api(request):
        return problem(403, reason)
    return error_card(request, 403, gettext("Not allowed"), reason)
