"""Log in and out. The answer to a wrong name and to a wrong password is the same, and takes as long."""

from __future__ import annotations

import logging

from django.contrib.auth import aauthenticate, alogin, alogout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import lockout, units
from dashboard.access import Permission, principal_of, requires, start_session_clock
from dashboard.client_address import client_address
from dashboard.forms import LoginForm

logger = logging.getLogger(__name__)

WRONG = "Name and password don't match."


@requires(Permission.OPEN)
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
async def login(request: HttpRequest) -> HttpResponse:
    target = safe_target(request, request.POST.get("next") or request.GET.get("next", ""))
    if request.method != "POST":
        if request.principal is not None:  # type: ignore[attr-defined]
            return redirect(target)
        return render(request, "session/login.html", {"form": LoginForm(), "next": target})
    form = LoginForm(request.POST)
    if not form.is_valid():
        return render(request, "session/login.html", {"form": form, "next": target}, status=422)
    username, address = form.cleaned_data["username"], client_address(request)
    until = await lockout.locked_until(username, address)
    if until is not None:
        wait = units.duration(max(60, int((until - timezone.now()).total_seconds()) + 59))
        form.add_error(None, f"Too many wrong tries. Wait {wait}, then try again.")
        return render(request, "session/login.html", {"form": form, "next": target}, status=429)
    user = await aauthenticate(request, username=username, password=form.cleaned_data["password"])
    if principal_of(user) is None:
        await lockout.note_failure(username, address)
        logger.warning("log-in failed", extra={"event": "login_failed", "username": username, "address": address})
        form.add_error(None, WRONG)
        return render(request, "session/login.html", {"form": form, "next": target}, status=422)
    assert user is not None
    await lockout.forgive(username, address)
    await alogin(request, user)  # a new session key
    start_session_clock(request.session)
    logger.info("logged in", extra={"event": "login", "username": user.get_username(), "address": address})
    return redirect(target)


@requires(Permission.ACCOUNT)
@require_POST
async def logout(request: HttpRequest) -> HttpResponse:
    await alogout(request)
    return redirect("login")


def safe_target(request: HttpRequest, target: str) -> str:
    """`target` when it is a path of ours, else the Overview: nobody is sent elsewhere after logging in."""
    is_ours = target.startswith("/") and url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_ours else reverse("overview")
