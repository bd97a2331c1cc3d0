"""/first-run?token=…: the one-time link from the terminal makes the first administrator."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from dashboard.access import hashing
from dashboard.access.in_flight import TooManyAtOnce
from dashboard.access.known_browsers import remember
from dashboard.access.log_in import start_session
from dashboard.access.log_in_limit import RETRY_AFTER_S
from dashboard.access.permissions import FORM, Permission, requires
from dashboard.audit.notes import note
from dashboard.http.client_address import client_address
from dashboard.people import first_run as setup
from dashboard.people.forms import FirstRunForm


@requires(Permission.OPEN, FORM)
@sensitive_post_parameters("password", "again", "token")
async def first_run(request: HttpRequest) -> HttpResponse:
    token = (request.POST if request.method == "POST" else request.GET).get("token", "").strip()
    if not await sync_to_async(setup.token_opens)(token):
        return await _closed(request)
    if request.method != "POST":
        return render(request, "people/first_run.html", {"form": FirstRunForm(), "token": token})
    form = FirstRunForm(request.POST)
    if not await sync_to_async(form.is_valid)():
        return render(request, "people/first_run.html", {"form": form, "token": token}, status=422)
    wanted = form.cleaned_data
    try:
        password_hash = await hashing.known_browsers.hash(client_address(request), wanted["password"])
        user = await sync_to_async(setup.claim)(token, wanted["username"], password_hash)
    except TooManyAtOnce as exc:
        form.add_error(None, str(exc))
        response = render(request, "people/first_run.html", {"form": form, "token": token}, status=429)
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
        return response
    except setup.SetupRefused:
        return await _closed(request)
    note(request, "first administrator created", str(user), who=str(user))
    await start_session(request, user)
    overview = redirect("overview")
    remember(request, overview, user.get_username())
    return overview


async def _closed(request: HttpRequest) -> HttpResponse:
    has_admin = await sync_to_async(setup.admin_exists)()
    return render(request, "people/closed.html", {"has_admin": has_admin}, status=403)
