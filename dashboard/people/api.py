"""/api/v1/users, /invitations and /account: what the page People does, and one's own password.

Needs a token of the scope admin.
"""

from __future__ import annotations

from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import Query

from dashboard.access import hashing
from dashboard.access.in_flight import TooManyAtOnce
from dashboard.access.log_in import try_password
from dashboard.access.permissions import Permission
from dashboard.access.tokens import TooManyTokens, create_token, living_tokens, revoke_token
from dashboard.audit.notes import changed, note, note_nothing
from dashboard.cluster import units
from dashboard.http.client_address import client_address
from dashboard.models.identities import Identity
from dashboard.models.management import ApiToken, Role, User
from dashboard.people import invitations, user_accounts
from dashboard.people.forms import PasswordForm
from dashboard.people.schemas import (
    InvitationIn,
    InvitationList,
    InvitationMade,
    InvitationOut,
    PasswordIn,
    SessionsEnded,
    TokenIn,
    TokenList,
    TokenMade,
    TokenOut,
    UserChange,
    UserDetailOut,
    UserList,
    UserOut,
)
from dashboard.people.user_accounts import UserProblem
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, part_of
from dashboard.rest.refusals import FormProblem, NotPossible
from dashboard.rest.routes import Routes

users = Routes()
invited = Routes()
account = Routes()
PEOPLE = Token(Permission.USERS_WRITE)
OWN = Token(Permission.ACCOUNT)


@users.get("", auth=PEOPLE, summary="List accounts")
async def list_users(
    request: HttpRequest,
    q: str = Query("", max_length=64, description="part of the name"),
    cursor: Cursor = "",
    limit: Limit = 100,
) -> UserList:
    part = part_of(cursor, limit)
    rows = User.objects.filter(username__icontains=q).order_by("username")
    found = [user async for user in rows[part.rows]]
    issuers = {row.user_id: row.issuer async for row in Identity.objects.filter(user__in=found)}
    shown = [UserOut.of(user, issuer=issuers.get(user.pk, "")) for user in found]
    return UserList.cut(part, shown, await rows.acount())


@users.get("/{name}", auth=PEOPLE, summary="One account with its sessions and tokens")
async def get_user(request: HttpRequest, name: str) -> UserDetailOut:
    return await _whole(await _named(name))


@users.put("/{name}", auth=PEOPLE, response=409, summary="Change an account's role and names, close it or open it")
async def update_user(request: HttpRequest, name: str, body: UserChange) -> UserDetailOut:
    user = await _named(name)
    if user.pk == request.auth.user.pk:  # type: ignore[attr-defined]
        note_nothing(request)
        raise NotPossible("This is your own account: another administrator has to do that.")
    note_nothing(request)
    try:
        if body.prefixes is not None and not body.prefixes:  # before the role: administrators have no limit
            await _limit(request, user, ())
        if body.role is not None and body.role != user.role:
            await sync_to_async(user_accounts.set_role)(user, Role(body.role))
            note(request, "role changed", user.username, {"role": {"before": user.role, "after": body.role}})
            user.role = body.role
        if body.prefixes:
            await _limit(request, user, tuple(body.prefixes))
        if body.is_open is False and user.is_active:
            ended = await sync_to_async(user_accounts.close_account)(user)
            note(request, "account closed", user.username, {"sessions_ended": ended})
        elif body.is_open is True and not user.is_active:
            await sync_to_async(user_accounts.open_account)(user)
            note(request, "account opened", user.username)
    except UserProblem as exc:
        raise NotPossible(_sentence(exc)) from exc
    return await _whole(await _named(name))


@users.delete("/{name}/sessions", auth=PEOPLE, summary="End an account's sessions")
async def end_sessions(
    request: HttpRequest, name: str, session: str = Query("", max_length=64, description="only the one of this id")
) -> SessionsEnded:
    user = await _named(name)

    def end() -> int:
        chosen = [one for one in user_accounts.open_sessions(user) if session in ("", one.id)]
        return user_accounts.end_sessions(chosen)

    ended = await sync_to_async(end)()
    note(request, "sessions ended", user.username, {"sessions": ended})
    return SessionsEnded(ended=ended)


@invited.get("", auth=PEOPLE, summary="List open invitations")
async def list_invitations(request: HttpRequest) -> InvitationList:
    rows = invitations.open_invitations().order_by("expires_at")
    return InvitationList.whole([InvitationOut.of_row(row) async for row in rows])


@invited.post("", auth=PEOPLE, response=(201, 409), summary="Invite a user; the link is shown once")
async def create_invitation(request: HttpRequest, body: InvitationIn) -> InvitationMade:
    maker: User = request.auth.user  # type: ignore[attr-defined]
    try:
        made, secret = await sync_to_async(invitations.invite)(maker, Role(body.role), body.label, tuple(body.prefixes))
    except UserProblem as exc:
        note_nothing(request)
        raise NotPossible(_sentence(exc)) from exc
    note(request, "user invited", body.label, invitations.facts(body.role, tuple(body.prefixes)))
    link = request.build_absolute_uri(f"{reverse('invitation')}?{urlencode({'token': secret})}")
    return InvitationMade.of_row(made, link=link)


@invited.delete("/{int:invitation_id}", auth=PEOPLE, summary="Withdraw an invitation")
async def withdraw_invitation(request: HttpRequest, invitation_id: int) -> None:
    ended = await sync_to_async(invitations.withdraw)(invitation_id)
    if ended is None:
        note_nothing(request)
        raise NotPossible("There is no such open invitation.", status=404)
    note(request, "invitation withdrawn", ended.label)


@users.delete("/{name}/tokens/{int:token_id}", auth=PEOPLE, summary="Revoke a token of an account")
async def revoke_token_of(request: HttpRequest, name: str, token_id: int) -> None:
    user = await _named(name)
    token = await ApiToken.objects.filter(user=user, revoked_at=None, pk=token_id).afirst()
    if token is None:
        note_nothing(request)
        raise NotPossible("This token no longer exists.", status=404)
    await ApiToken.objects.filter(pk=token.pk).aupdate(revoked_at=timezone.now())
    note(request, "token revoked", user.username, {"token": token.name})


async def _limit(request: HttpRequest, user: User, prefixes: tuple[str, ...]) -> None:
    """Raises UserProblem."""
    if prefixes == user.prefixes:
        return
    await sync_to_async(user_accounts.set_prefixes)(user, prefixes)
    action = "names limited" if prefixes else "limit of names removed"
    note(request, action, user.username, changed({"prefixes": list(user.prefixes)}, {"prefixes": list(prefixes)}))
    user.name_prefixes = " ".join(prefixes)


async def _named(name: str) -> User:
    user = await User.objects.filter(username__iexact=name).afirst()
    if user is None:
        raise NotPossible("There is no such account.", status=404)
    return user


async def _whole(user: User) -> UserDetailOut:
    def read() -> UserDetailOut:
        return UserDetailOut.of(
            user, issuer=user_accounts.issuer_of(user), sessions=user_accounts.open_sessions(user),
            api_access=list(living_tokens(user)),
        )  # fmt: skip

    return await sync_to_async(read)()


def _sentence(exc: UserProblem) -> str:
    text = str(exc)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


@account.put("/password", auth=OWN, response=429, summary="Change your password; other sessions end")
async def change_own_password(request: HttpRequest, body: PasswordIn) -> SessionsEnded:
    user: User = request.auth.user  # type: ignore[attr-defined]
    note_nothing(request)
    form = PasswordForm({"current": body.current, "password": body.password, "again": body.password}, user=user)
    if not await sync_to_async(form.is_valid)():
        raise FormProblem({key: texts for key, texts in form.problems().items() if key != "again"})
    outcome = await try_password(request, user.username, body.current)
    if outcome.wait_s:
        raise NotPossible(f"Too many tries. Wait {units.duration(outcome.wait_s)}.", status=429)
    if outcome.user is None:
        raise FormProblem({"current": ["That is not your password."]})
    try:
        new_hash = await hashing.known_browsers.hash(client_address(request), body.password)
    except TooManyAtOnce as exc:
        raise NotPossible(str(exc), status=429) from exc
    ended = await sync_to_async(user_accounts.change_password)(outcome.user, new_hash)
    note(request, "password changed", str(user), {"sessions_ended": ended})
    return SessionsEnded(ended=ended)


tokens = Routes()


@tokens.get("", auth=OWN, summary="List your tokens")
async def list_tokens(request: HttpRequest) -> TokenList:
    user = request.auth.user  # type: ignore[attr-defined]
    return TokenList.whole([TokenOut.of(row) async for row in living_tokens(user)])


@tokens.post("", auth=OWN, response=(201, 409), summary="Create a token; it is shown once", operation_id="create_token")
async def make_token(request: HttpRequest, body: TokenIn) -> TokenMade:
    user = request.auth.user  # type: ignore[attr-defined]
    try:
        row, secret = await create_token(user, body.name, body.scope, body.life_days)
    except TooManyTokens as exc:
        raise NotPossible(str(exc)) from exc
    note(request, "token created", body.name, {"scope": body.scope, "days": body.life_days})
    return TokenMade.of(row, shown_once=secret)


@tokens.delete("/{int:token_id}", auth=OWN, summary="Revoke one of your tokens", operation_id="revoke_token")
async def end_token(request: HttpRequest, token_id: int) -> None:
    user = request.auth.user  # type: ignore[attr-defined]
    if not await revoke_token(user, token_id):
        note_nothing(request)
        raise NotPossible("This token no longer exists.", status=404)
    note(request, "token revoked", f"token {token_id}")
