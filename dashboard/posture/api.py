"""/api/v1/security: what the page Security shows. Needs a token of the scope admin."""

from __future__ import annotations

from typing import Literal, cast

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Schema

from dashboard.access.permissions import Permission
from dashboard.cluster.gateway import gateway
from dashboard.posture.review import review
from dashboard.rest.auth import Token
from dashboard.rest.refusals import REFUSALS

router = Router()
Word = Literal["attention", "problem"]
PEOPLE = Token(Permission.USERS_WRITE)


class PostureFindingOut(Schema):
    """A weakness. code: stays the same over versions; lines: settings or a command that change it; page: its page."""

    code: str
    level: Word
    title: str
    seen: str
    advice: str
    lines: str
    page: str


class PostureOut(Schema):
    """The worst first. troubles: what could not be looked at."""

    findings: list[PostureFindingOut]
    troubles: list[str]


@router.get("", response={200: PostureOut} | REFUSALS, auth=PEOPLE, summary="What is open to whom",
            operation_id="get_security_posture")  # fmt: skip
async def get_posture(request: HttpRequest) -> PostureOut:
    found = await review(gateway(), settings.APPLIANCE)
    return PostureOut(
        findings=[
            PostureFindingOut(code=one.code, level=cast(Word, one.level.word), title=one.title, seen=one.seen,
                       advice=one.advice, lines=one.lines, page=one.href)
            for one in found.findings
        ],
        troubles=found.troubles,
    )  # fmt: skip
