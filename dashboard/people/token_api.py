"""/api/v1/tokens: the caller's own API tokens. Needs a token of the scope admin."""

from __future__ import annotations

import logging

from django.http import HttpRequest
from ninja import Router, Status

from dashboard.access.permissions import Permission
from dashboard.access.tokens import TooManyTokens, create_token, living_tokens, revoke_token
from dashboard.audit.notes import note, note_nothing
from dashboard.people.schemas import TokenIn, TokenList, TokenMade, TokenOut
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS, NotPossible, caller

logger = logging.getLogger(__name__)

router = Router()
OWN = Token(Permission.ACCOUNT)


@router.get("", response={200: TokenList} | REFUSALS, auth=OWN, summary="List your tokens",
            operation_id="list_tokens")  # fmt: skip
async def list_tokens(request: HttpRequest) -> TokenList:
    user = request.auth.user  # type: ignore[attr-defined]
    return TokenList(items=[TokenOut.of(row) async for row in living_tokens(user)])


@router.post("", response={201: TokenMade} | REFUSALS, auth=OWN, summary="Create a token; it is shown once",
             operation_id="create_token")  # fmt: skip
async def make_token(request: HttpRequest, body: TokenIn) -> Status[TokenMade]:
    user = request.auth.user  # type: ignore[attr-defined]
    try:
        row, secret = await create_token(user, body.name, body.scope, body.life_days)
    except TooManyTokens as exc:
        raise NotPossible(str(exc)) from exc
    note(request, "token created", body.name, {"scope": body.scope, "days": body.life_days})
    logger.info("token created", extra={"event": "token_created", "scope": body.scope} | caller(request))
    return Status(201, TokenMade.of(row, shown_once=secret))


@router.delete("/{int:token_id}", response={204: None} | REFUSALS, auth=OWN, summary="Revoke one of your tokens",
               operation_id="revoke_token")  # fmt: skip
async def end_token(request: HttpRequest, token_id: int) -> Status[None]:
    user = request.auth.user  # type: ignore[attr-defined]
    if not await revoke_token(user, token_id):
        note_nothing(request)
        raise NotPossible("This token no longer exists.", status=404)
    note(request, "token revoked", f"token {token_id}")
    logger.info("token revoked", extra={"event": "token_revoked"} | caller(request))
    return Status(204, None)
