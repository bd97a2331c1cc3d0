"""/login/provider: to the OpenID Connect provider, and back from there with a code. Neither changes anything by itself.

Both are GETs, as browsers come back by one, and as a form's redirect to another site is forbidden by our own policy.
"""

from __future__ import annotations

import dataclasses
import logging

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from dashboard.access.log_in import start_session
from dashboard.access.permissions import Permission, requires
from dashboard.audit.notes import note
from dashboard.http.client_address import client_address
from dashboard.people.forms import LoginForm
from dashboard.sign_in.begun import Begun, forget, keep, kept
from dashboard.sign_in.claims import person_of
from dashboard.sign_in.errors import BadAnswer, Refused, SignInProblem
from dashboard.sign_in.offer import provider_name, provider_of
from dashboard.sign_in.people import Admitted, admit
from dashboard.sign_in.views import log_in_page, safe_target
from dashboard.sign_in.wire import START_TIMEOUT_S, in_thread
from gantrymq.log_limit import LogLimit

logger = logging.getLogger(__name__)
_log_limit = LogLimit()


@requires(Permission.OPEN, ("GET",))
async def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider; what it has to bring back with the answer is in its cookie."""
    config = settings.APPLIANCE
    if not config.oidc_issuer:
        raise Http404
    target = safe_target(request, request.GET.get("next", ""))
    provider = provider_of(config)
    from dashboard.sign_in import exchange  # here, because it loads Authlib, and most appliances have no provider

    try:
        url, begun = await in_thread(
            config, lambda wire: exchange.begin(wire, provider, config, _redirect_uri(request)), START_TIMEOUT_S
        )
    except SignInProblem as exc:
        return _failed(request, exc, target)
    response = HttpResponseRedirect(url)
    keep(request, response, dataclasses.replace(begun, target=target))
    return response


@requires(Permission.OPEN, ("GET",))
@sensitive_variables()
async def back(request: HttpRequest) -> HttpResponse:
    """Take the provider's answer: a session, or the log-in page with the reason."""
    config = settings.APPLIANCE
    if not config.oidc_issuer:
        raise Http404
    try:
        begun = kept(request)
    except BadAnswer as exc:  # any page can lead a browser here: it costs nothing, and locks no one out
        return _failed(request, exc, reverse("overview"))
    target = safe_target(request, begun.target)
    try:
        admitted = await _sign_in(request, begun)
    except SignInProblem as exc:  # codes and tokens can't be guessed, so none locks out who shares the address
        return _failed(request, exc, target)
    await start_session(request, admitted.user)
    _write_down(request, admitted)
    response = redirect(target)
    forget(response)
    return response


async def _sign_in(request: HttpRequest, begun: Begun) -> Admitted:
    from dashboard.sign_in import exchange

    config = settings.APPLIANCE
    provider, told, there = provider_of(config), request.GET.dict(), _redirect_uri(request)
    claims = await in_thread(config, lambda wire: exchange.finish(wire, provider, config, there, begun, told))
    return await sync_to_async(admit)(person_of(claims, config), config.oidc_issuer)


def _redirect_uri(request: HttpRequest) -> str:
    """The address that has to be registered at the provider."""
    return request.build_absolute_uri(reverse("provider-back"))


def _write_down(request: HttpRequest, admitted: Admitted) -> None:
    who, by = str(admitted.user), provider_name(settings.APPLIANCE)
    if admitted.is_new:
        details = {"role": admitted.user.role, "prefixes": list(admitted.user.prefixes) or None, "provider": by}
        note(request, "account created by a sign-in", who, details, who=who)
    if admitted.changes:
        note(request, "role changed by a sign-in", who, admitted.changes | {"provider": by}, who=who)
    note(request, "logged in", details={"provider": by}, who=who)


def _failed(request: HttpRequest, problem: SignInProblem, target: str) -> HttpResponse:
    name = ""
    if isinstance(problem, Refused):
        name = problem.name
        details = {"subject": problem.subject[:255], "reason": str(problem)}
        note(request, "sign-in rejected", problem.name[:64], details)
    left_out = _log_limit.left_out("login_failed", client_address(request))
    if left_out is not None:
        facts = {"event": "login_failed", "address": client_address(request), "reason": str(problem)}
        by = {"username": name or None, "provider": provider_name(settings.APPLIANCE), "left_out": left_out or None}
        logger.warning("log-in failed", extra={**facts, **by})
    response = log_in_page(request, LoginForm(), target, problem=problem.shown(), status=problem.status)
    forget(response)
    return response
