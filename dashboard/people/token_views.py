"""API tokens of the account that is logged in: list, create (the secret is shown once), revoke."""

from __future__ import annotations

import logging

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from dashboard.access.permissions import Permission, requires
from dashboard.access.tokens import TooManyTokens, create_token, revoke_token, shown_once
from dashboard.audit.notes import note
from dashboard.models.management import ApiToken, User
from dashboard.people.forms import TokenForm

logger = logging.getLogger(__name__)


@requires(Permission.ACCOUNT)
@require_http_methods(["GET", "HEAD", "POST"])
async def tokens(request: HttpRequest) -> HttpResponse:
    user = request.principal.user  # type: ignore[attr-defined]
    status = 200
    form = TokenForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        status = 422
        made = await _make(user, form) if form.is_valid() else ""
        if made:
            wanted = form.cleaned_data
            note(request, "token created", wanted["name"], {"scope": wanted["scope"], "days": wanted["life_days"]})
            logger.info(
                "token created", extra={"event": "token_created", "username": str(user), "scope": wanted["scope"]}
            )
            return redirect(f"{reverse('tokens')}?{urlencode({'made': shown_once.put(user, made)})}")
    secret = shown_once.take(user, request.GET["made"]) if request.method == "GET" and "made" in request.GET else None
    rows = [token async for token in ApiToken.objects.filter(user=user, revoked_at=None)[:200]]
    context = {"form": form, "tokens": rows, "secret": secret, "now": timezone.now(), "host": request.get_host()}
    return render(request, "people/tokens.html", context, status=status)


@requires(Permission.ACCOUNT)
@require_http_methods(["GET", "HEAD", "POST"])
async def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """What would stop working; then the button."""
    user = request.principal.user  # type: ignore[attr-defined]
    if request.method != "POST":
        token = await ApiToken.objects.filter(user=user, pk=token_id, revoked_at=None).afirst()
        return redirect("tokens") if token is None else render(request, "people/revoke.html", {"token": token})
    if await revoke_token(user, token_id):
        note(request, "token revoked", f"token {token_id}")
        logger.info("token revoked", extra={"event": "token_revoked", "username": str(user)})
        notes.success(request, gettext("Token revoked. Calls with it are rejected from now on."))
    return redirect("tokens")


async def _make(user: User, form: TokenForm) -> str:
    """The new token's secret; "" when the account has enough of them, which the form says then."""
    wanted = form.cleaned_data
    try:
        return (await create_token(user, wanted["name"], wanted["scope"], wanted["life_days"]))[1]
    except TooManyTokens as exc:
        form.add_error(None, str(exc))
        return ""
