"""Pages on which people choose a password: the one-time link from the terminal, which makes the first administrator;
an invitation; and one's own, for which the one of now is asked, and every other session ends.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages as notes
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters

from dashboard.access import hashing
from dashboard.access.in_flight import TooManyAtOnce
from dashboard.access.known_browsers import remember
from dashboard.access.log_in import start_session, try_password
from dashboard.access.log_in_limit import RETRY_AFTER_S
from dashboard.access.permissions import FORM, Permission, requires
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster import units
from dashboard.http.client_address import client_address
from dashboard.models.management import User
from dashboard.people import first_run as setup
from dashboard.people import invitations, user_accounts
from dashboard.people.forms import FirstRunForm, NewAccountForm, PasswordForm
from dashboard.people.user_accounts import UserProblem


@requires(Permission.OPEN, FORM)
@sensitive_post_parameters("password", "again", "token")
async def first_run(request: HttpRequest) -> HttpResponse:
    """/first-run?token=…: the link from the terminal."""
    page, token = "people/first_run.html", _token(request)
    if not await sync_to_async(setup.token_opens)(token):
        return await _closed(request)
    if request.method != "POST":
        return render(request, page, {"form": FirstRunForm(), "token": token})
    form = FirstRunForm(request.POST)
    context = {"form": form, "token": token}
    if not await sync_to_async(form.is_valid)():
        return render(request, page, context, status=422)
    wanted = form.cleaned_data
    try:
        password_hash = await hashing.known_browsers.hash(client_address(request), wanted["password"])
        user = await sync_to_async(setup.claim)(token, wanted["username"], password_hash)
    except TooManyAtOnce as exc:
        return _try_later(request, page, context, str(exc))
    except setup.SetupRefused:
        return await _closed(request)
    note(request, "first administrator created", str(user), who=str(user))
    return await _logged_in(request, user)


async def _closed(request: HttpRequest) -> HttpResponse:
    has_admin = await sync_to_async(setup.admin_exists)()
    return render(request, "people/closed.html", {"has_admin": has_admin}, status=403)


@requires(Permission.OPEN, FORM)
@sensitive_post_parameters("password", "again", "token")
async def invitation(request: HttpRequest) -> HttpResponse:
    """/invitation?token=…: the form, and what takes it; without an open invitation neither."""
    page, token = "people/invitation.html", _token(request)[:200]
    invited = await sync_to_async(invitations.find)(token)
    if invited is None:
        return render(request, "people/invitation_closed.html", status=403)
    form = NewAccountForm(request.POST if request.method == "POST" else None)
    context = {"token": token, "invited": invited, "form": form}
    if request.method != "POST":
        return render(request, page, context)
    if not await sync_to_async(form.is_valid)():
        return render(request, page, context, status=422)
    wanted = form.cleaned_data
    try:
        password_hash = await hashing.known_browsers.hash(client_address(request), wanted["password"])
        user = await sync_to_async(invitations.accept)(token, wanted["username"], password_hash)
    except TooManyAtOnce as exc:
        return _try_later(request, page, context, str(exc))
    except UserProblem as exc:
        form.add_error("username", str(exc))
        return render(request, page, context, status=422)
    details = {"role": user.role, "invited_by": str(invited.made_by), "invited_as": invited.label}
    note(request, "invitation accepted", str(user), details, who=str(user))
    return await _logged_in(request, user)


@requires(Permission.ACCOUNT, FORM)
@sensitive_post_parameters("current", "password", "again")
async def password(request: HttpRequest) -> HttpResponse:
    page = "people/password.html"
    user: User = request.principal.user  # type: ignore[attr-defined]
    if issuer := await sync_to_async(user_accounts.issuer_of)(user):
        note_nothing(request)
        status = 200 if request.method != "POST" else 403
        return render(request, page, {"issuer": issuer}, status=status)
    form = PasswordForm(request.POST if request.method == "POST" else None, user=user)
    context = {"form": form}
    if request.method != "POST":
        return render(request, page, context)
    if not await sync_to_async(form.is_valid)():
        return render(request, page, context, status=422)
    outcome = await try_password(request, user.username, form.cleaned_data["current"])
    if outcome.user is None and outcome.wait_s:
        told = gettext("Too many attempts. Wait %(wait_s)s.") % {"wait_s": units.duration(outcome.wait_s)}
        return _try_later(request, page, context, told, outcome.wait_s)
    if outcome.user is None:
        form.add_error("current", gettext("That is not your password."))
        return render(request, page, context, status=422)
    try:
        new_hash = await hashing.known_browsers.hash(client_address(request), form.cleaned_data["password"])
    except TooManyAtOnce as exc:
        return _try_later(request, page, context, str(exc))
    ended = await sync_to_async(user_accounts.change_password)(outcome.user, new_hash)
    note(request, "password changed", str(user), {"sessions_ended": ended})
    notes.success(request, gettext("Your password is changed. Other browsers are logged out; API tokens keep working."))
    return await _logged_in(request, outcome.user)


def _token(request: HttpRequest) -> str:
    return (request.POST if request.method == "POST" else request.GET).get("token", "").strip()


def _try_later(
    request: HttpRequest, page: str, context: dict[str, Any], told: str, wait_s: int = RETRY_AFTER_S
) -> HttpResponse:
    """The page again, with its form, which says why it did nothing."""
    form: Form = context["form"]
    form.add_error(None, told)
    response = render(request, page, context, status=429)
    response.headers["Retry-After"] = str(wait_s)
    return response


async def _logged_in(request: HttpRequest, user: User) -> HttpResponse:
    """A session of this browser, which counts as one that the account has used before."""
    await start_session(request, user)
    overview = redirect("overview")
    remember(request, overview, user.get_username())
    return overview
