"""One's own password: the one of now is asked for, and every other session ends."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib import messages as notes
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
from dashboard.people import user_accounts
from dashboard.people.forms import PasswordForm


@requires(Permission.ACCOUNT, FORM)
@sensitive_post_parameters("current", "password", "again")
async def password(request: HttpRequest) -> HttpResponse:
    user: User = request.principal.user  # type: ignore[attr-defined]
    if issuer := await sync_to_async(user_accounts.issuer_of)(user):
        note_nothing(request)
        status = 200 if request.method != "POST" else 403
        return render(request, "people/password.html", {"issuer": issuer}, status=status)
    form = PasswordForm(request.POST if request.method == "POST" else None, user=user)
    if request.method != "POST":
        return render(request, "people/password.html", {"form": form})
    if not await sync_to_async(form.is_valid)():
        return render(request, "people/password.html", {"form": form}, status=422)
    outcome = await try_password(request, user.username, form.cleaned_data["current"])
    if outcome.user is None:
        if outcome.wait_s:
            form.add_error(
                None, gettext("Too many attempts. Wait %(wait_s)s.") % {"wait_s": units.duration(outcome.wait_s)}
            )
        else:
            form.add_error("current", gettext("That is not your password."))
        return _again(request, form, outcome.wait_s)
    try:
        new_hash = await hashing.known_browsers.hash(client_address(request), form.cleaned_data["password"])
    except TooManyAtOnce as exc:
        form.add_error(None, str(exc))
        return _again(request, form, RETRY_AFTER_S)
    ended = await sync_to_async(user_accounts.change_password)(outcome.user, new_hash)
    await start_session(request, outcome.user)
    note(request, "password changed", str(user), {"sessions_ended": ended})
    notes.success(request, gettext("Your password is changed. Other browsers are logged out; API tokens keep working."))
    response = redirect("overview")
    remember(request, response, user.username)
    return response


def _again(request: HttpRequest, form: PasswordForm, wait_s: int) -> HttpResponse:
    response = render(request, "people/password.html", {"form": form}, status=429 if wait_s else 422)
    if wait_s:
        response.headers["Retry-After"] = str(wait_s)
    return response
