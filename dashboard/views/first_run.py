"""/first-run?token=…: the one-time link from the terminal makes the first administrator."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.auth import alogin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dashboard import first_run as setup
from dashboard.access import Permission, requires, start_session_clock
from dashboard.forms import FirstRunForm


@requires(Permission.OPEN)
@sensitive_post_parameters("password", "again", "token")
@require_http_methods(["GET", "HEAD", "POST"])
async def first_run(request: HttpRequest) -> HttpResponse:
    token = (request.POST if request.method == "POST" else request.GET).get("token", "").strip()
    if not await sync_to_async(setup.token_opens)(token):
        return await _closed(request)
    if request.method != "POST":
        return render(request, "first_run/first_run.html", {"form": FirstRunForm(), "token": token})
    form = FirstRunForm(request.POST)
    if not await sync_to_async(form.is_valid)():
        return render(request, "first_run/first_run.html", {"form": form, "token": token}, status=422)
    try:
        user = await sync_to_async(setup.claim)(token, form.cleaned_data["username"], form.cleaned_data["password"])
    except setup.SetupRefused:
        return await _closed(request)
    await alogin(request, user, backend="django.contrib.auth.backends.ModelBackend")
    start_session_clock(request.session)
    return redirect("overview")


async def _closed(request: HttpRequest) -> HttpResponse:
    has_admin = await sync_to_async(setup.admin_exists)()
    return render(request, "first_run/closed.html", {"has_admin": has_admin}, status=403)
