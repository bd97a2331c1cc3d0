"""Log in and out. The answer to a wrong name and to a wrong password is the same, and takes as long."""

from __future__ import annotations

import logging

from django.contrib.auth import alogout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from dashboard.access.known_browsers import remember
from dashboard.access.log_in import Outcome, start_session, try_password
from dashboard.access.permissions import ACT, FORM, Permission, requires
from dashboard.audit.notes import note
from dashboard.cluster import units
from dashboard.http.client_address import client_address
from dashboard.models.identities import Identity
from dashboard.people.forms import LoginForm
from dashboard.sign_in.offer import offer

logger = logging.getLogger(__name__)

WRONG = gettext_lazy("Name and password don't match.")


@requires(Permission.OPEN, FORM)
@sensitive_post_parameters("password")
async def login(request: HttpRequest) -> HttpResponse:
    target = safe_target(request, request.POST.get("next") or request.GET.get("next", ""))
    if request.method != "POST":
        if request.principal is not None:  # type: ignore[attr-defined]
            return redirect(target)
        return log_in_page(request, LoginForm(), target)
    form = LoginForm(request.POST)
    if not form.is_valid():
        return log_in_page(request, form, target, status=422)
    username = form.cleaned_data["username"]
    outcome = await try_password(request, username, form.cleaned_data["password"])
    if outcome.user is None:
        return _refused(request, form, target, outcome)
    await start_session(request, outcome.user)
    note(request, "logged in", who=str(outcome.user))
    response = redirect(target)
    remember(request, response, username)
    return response


def _refused(request: HttpRequest, form: LoginForm, target: str, outcome: Outcome) -> HttpResponse:
    """The form again, with the reason; the same for a wrong name and for a wrong password."""
    if outcome.is_locked:
        wait = units.duration(max(60, outcome.wait_s + 59))
        form.add_error(
            None,
            (
                gettext("Too many wrong attempts. Wait %(wait)s, or run `gantry users unlock` on the server.")
                % {"wait": wait}
            ),
        )
    elif outcome.wait_s:
        form.add_error(None, gettext("Too many log-ins at once. Try again in a moment."))
    else:
        form.add_error(None, WRONG)
        # what was typed is not logged when no account has that name: it may have been the password
        facts = {"event": "login_failed", "username": outcome.tried or None, "address": client_address(request)}
        logger.warning("log-in failed", extra=facts)
    status = 429 if outcome.wait_s else 422
    response = log_in_page(request, form, target, status=status)
    if outcome.wait_s:
        response.headers["Retry-After"] = str(outcome.wait_s)
    return response


@requires(Permission.ACCOUNT, ACT)
async def logout(request: HttpRequest) -> HttpResponse:
    note(request, "logged out")
    signs_in_there = await Identity.objects.filter(user=request.principal.user).aexists()  # type: ignore[attr-defined]
    await alogout(request)
    return redirect(f"{reverse('login')}?out=1" if signs_in_there else "login")


def log_in_page(
    request: HttpRequest, form: LoginForm, target: str, *, problem: str = "", status: int = 200
) -> HttpResponse:
    """The form, and the button of the provider if there is one. problem: why signing in there did not work."""
    context = {"form": form, "next": target, "problem": problem, "provider": offer(request)}
    return render(request, "sign_in/login.html", context, status=status)


def safe_target(request: HttpRequest, target: str) -> str:
    """`target` when it is a path of this site, else the Overview: logging in never leads to another site."""
    is_local = target.startswith("/") and url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_local else reverse("overview")
