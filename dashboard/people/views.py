"""People: who may log in, as what, since when; one-time invitations; an account's API tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages as notes
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, FORM, ROLE_PERMISSIONS, Permission, requires
from dashboard.access.tokens import TooManyTokens, create_token, revoke_token, shown_once
from dashboard.audit.notes import changed, note, note_nothing
from dashboard.language.sentences import joined
from dashboard.models.identities import Identity
from dashboard.models.management import ApiToken, Role, User
from dashboard.people import invitations, user_accounts
from dashboard.people.forms import InvitationForm, TokenForm
from dashboard.people.permission_words import permissions_in_words
from dashboard.people.user_accounts import UserProblem

PEOPLE_MAX = 500  # in the list


@requires(Permission.USERS_WRITE, FORM)
async def people(request: HttpRequest) -> HttpResponse:
    """The accounts and open invitations; a POST makes an invitation, whose link is shown once."""
    user = request.principal.user  # type: ignore[attr-defined]
    form, status = InvitationForm(request.POST if request.method == "POST" else None), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            wanted = form.cleaned_data
            try:
                _, made = await sync_to_async(invitations.invite)(
                    user, Role(wanted["role"]), wanted["label"], wanted["prefixes"]
                )
            except UserProblem as exc:
                form.add_error(None, str(exc))
            else:
                note(request, "user invited", wanted["label"], invitations.facts(wanted["role"], wanted["prefixes"]))
                return redirect(f"{reverse('people')}?{urlencode({'made': shown_once.put(user, made)})}")
    secret = shown_once.take(user, request.GET["made"]) if request.method == "GET" and "made" in request.GET else None
    link = request.build_absolute_uri(f"{reverse('invitation')}?{urlencode({'token': secret})}") if secret else ""
    context = await sync_to_async(_people_context)() | {"form": form, "link": link, "life": invitations.LIFE.days}
    return render(request, "people/people.html", context, status=status)


@requires(Permission.USERS_WRITE, ACT)
async def withdraw(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """End an invitation before it is used."""
    ended = await sync_to_async(invitations.withdraw)(invitation_id)
    if ended is None:
        note_nothing(request)
    else:
        note(request, "invitation withdrawn", ended.label)
        notes.success(request, gettext("The invitation is withdrawn: its link opens nothing."))
    return redirect("people")


@requires(Permission.USERS_WRITE, FORM)
async def person(request: HttpRequest, user_id: int) -> HttpResponse:
    """One account: its role, sessions and tokens, and what an administrator may do about them."""
    found = await User.objects.filter(pk=user_id).afirst()
    if found is None:
        raise Http404
    refusal = ""
    if request.method == "POST":
        try:
            said = await _do(request, found)
        except UserProblem as exc:
            note_nothing(request)
            refusal = str(exc)
        else:
            notes.success(request, said)
            return redirect("person", user_id)
    context = await sync_to_async(_person_context)(found)
    context |= {"is_self": found.pk == request.principal.user.pk, "refusal": refusal}  # type: ignore[attr-defined]
    return render(request, "people/person.html", context, status=422 if refusal else 200)


async def _do(request: HttpRequest, found: User) -> str:
    """Carry out what the form's button says; returns what to tell. Raises UserProblem."""
    does = DEEDS.get(request.POST.get("do", ""))
    if does is None:
        raise UserProblem(gettext("That is not possible here."))
    if found.pk == request.principal.user.pk and does is not _end_session:  # type: ignore[attr-defined]
        raise UserProblem(gettext("This is your own account: another administrator has to do that."))
    action, details, said = await sync_to_async(does)(request, found)
    note(request, action, found.username, details)
    return said


Deed = tuple[str, dict[str, Any], str]  # what the audit log calls it, its details, what the page says


def _set_role(request: HttpRequest, found: User) -> Deed:
    role = user_accounts.as_role(request.POST.get("role", ""))
    user_accounts.set_role(found, role)
    return (
        "role changed",
        {"role": {"before": found.role, "after": role.value}},
        gettext("%(name)s has the role “%(role)s” now.") % {"name": found.username, "role": role.label},
    )


def _set_prefixes(request: HttpRequest, found: User) -> Deed:
    prefixes = user_accounts.as_prefixes(request.POST.get("prefixes", ""))
    user_accounts.set_prefixes(found, prefixes)
    if prefixes:
        said = gettext("%(name)s sees only names that begin with %(begins)s.")
    else:
        said = gettext("%(name)s sees every topic and group.")
    said = said % {"name": found.username, "begins": joined(prefixes)}
    details = changed({"prefixes": list(found.prefixes)}, {"prefixes": list(prefixes)})
    return "names limited" if prefixes else "limit of names removed", details, said


def _close(request: HttpRequest, found: User) -> Deed:
    ended = user_accounts.close_account(found)
    said = gettext("%(name)s can no longer log in; its tokens are rejected.") % {"name": found.username}
    return "account closed", {"sessions_ended": ended}, said


def _open(request: HttpRequest, found: User) -> Deed:
    user_accounts.open_account(found)
    return "account opened", {}, gettext("%(name)s can log in again.") % {"name": found.username}


def _end_session(request: HttpRequest, found: User) -> Deed:
    wanted = request.POST.get("session", "")
    sessions = [item for item in user_accounts.open_sessions(found) if wanted in ("", item.id)]
    ended = user_accounts.end_sessions(sessions)
    return "sessions ended", {"sessions": ended}, gettext("Sessions ended: %(count)s.") % {"count": ended}


def _revoke(request: HttpRequest, found: User) -> Deed:
    given = request.POST.get("token", "")
    token = ApiToken.objects.filter(user=found, revoked_at=None, pk=int(given) if given.isdecimal() else 0).first()
    if token is None:
        raise UserProblem(gettext("This token no longer exists."))
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    said = gettext("Calls with the token %(name)s are rejected from now on.") % {"name": token.name}
    return "token revoked", {"token": token.name}, said


DEEDS: dict[str, Callable[[HttpRequest, User], Deed]] = {
    "role": _set_role,
    "prefixes": _set_prefixes,
    "close": _close,
    "open": _open,
    "end-session": _end_session,
    "revoke-token": _revoke,
}


def _people_context() -> dict[str, Any]:
    sessions = Counter(item.username for item in user_accounts.open_sessions())
    living = ApiToken.objects.filter(revoked_at=None, expires_at__gt=timezone.now())
    tokens = Counter(living.values_list("user__username", flat=True))
    users = User.objects.order_by("username")[:PEOPLE_MAX]
    elsewhere = set(Identity.objects.values_list("user_id", flat=True))
    return {
        "people": [(user, sessions[user.username], tokens[user.username]) for user in users],
        "elsewhere": elsewhere,
        "total": User.objects.count(),
        "invitations": list(invitations.open_invitations().order_by("expires_at")),
    }


def _person_context(found: User) -> dict[str, Any]:
    return {
        "person": found,
        "issuer": user_accounts.issuer_of(found),
        "roles": [(role, permissions_in_words(ROLE_PERMISSIONS[role])) for role in Role],
        "sessions": user_accounts.open_sessions(found),
        "tokens": list(ApiToken.objects.filter(user=found, revoked_at=None)[:200]),
        "now": timezone.now(),
    }


@requires(Permission.ACCOUNT, FORM)
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
            return redirect(f"{reverse('tokens')}?{urlencode({'made': shown_once.put(user, made)})}")
    secret = shown_once.take(user, request.GET["made"]) if request.method == "GET" and "made" in request.GET else None
    rows = [token async for token in ApiToken.objects.filter(user=user, revoked_at=None)[:200]]
    context = {"form": form, "tokens": rows, "secret": secret, "now": timezone.now(), "host": request.get_host()}
    return render(request, "people/tokens.html", context, status=status)


@requires(Permission.ACCOUNT, FORM)
async def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    """What would stop working; then the button."""
    user = request.principal.user  # type: ignore[attr-defined]
    if request.method != "POST":
        token = await ApiToken.objects.filter(user=user, pk=token_id, revoked_at=None).afirst()
        return redirect("tokens") if token is None else render(request, "people/revoke.html", {"token": token})
    if await revoke_token(user, token_id):
        note(request, "token revoked", f"token {token_id}")
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
