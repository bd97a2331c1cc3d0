"""/invitation?token=…: who was invited chooses a name and a password."""

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
from dashboard.people import invitations
from dashboard.people.forms import NewAccountForm
from dashboard.people.user_accounts import UserProblem


@requires(Permission.OPEN, FORM)
@sensitive_post_parameters("password", "again", "token")
async def invitation(request: HttpRequest) -> HttpResponse:
    """The form, and what takes it; without an open invitation neither."""
    token = (request.POST if request.method == "POST" else request.GET).get("token", "").strip()[:200]
    invited = await sync_to_async(invitations.find)(token)
    if invited is None:
        return render(request, "people/invitation_closed.html", status=403)
    context = {"token": token, "invited": invited}
    if request.method != "POST":
        return render(request, "people/invitation.html", context | {"form": NewAccountForm()})
    form = NewAccountForm(request.POST)
    if not await sync_to_async(form.is_valid)():
        return render(request, "people/invitation.html", context | {"form": form}, status=422)
    wanted = form.cleaned_data
    try:
        password_hash = await hashing.known_browsers.hash(client_address(request), wanted["password"])
        user = await sync_to_async(invitations.accept)(token, wanted["username"], password_hash)
    except TooManyAtOnce as exc:
        form.add_error(None, str(exc))
        response = render(request, "people/invitation.html", context | {"form": form}, status=429)
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
        return response
    except UserProblem as exc:
        form.add_error("username", str(exc))
        return render(request, "people/invitation.html", context | {"form": form}, status=422)
    details = {"role": user.role, "invited_by": str(invited.made_by), "invited_as": invited.label}
    note(request, "invitation accepted", str(user), details, who=str(user))
    await start_session(request, user)
    overview = redirect("overview")
    remember(request, overview, user.get_username())
    return overview
