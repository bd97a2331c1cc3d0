"""/api/v1/security: what the page Security shows. Needs a token of the scope admin."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from ninja import Router, Schema

from dashboard.access.permissions import Permission
from dashboard.cluster.gateway import gateway
from dashboard.rest.auth import Token
from dashboard.rest.checks import CheckOut
from dashboard.rest.refusals import REFUSALS
from dashboard.security.review import review

router = Router()
PEOPLE = Token(Permission.USERS_WRITE)


class SecurityOut(Schema):
    """The worst first. troubles: what could not be looked at."""

    checks: list[CheckOut]
    troubles: list[str]


@router.get("", response={200: SecurityOut} | REFUSALS, auth=PEOPLE, summary="Security findings",
            operation_id="get_security")  # fmt: skip
async def get_security(request: HttpRequest) -> SecurityOut:
    found = await review(gateway(), settings.APPLIANCE)
    return SecurityOut(checks=[CheckOut.of(one) for one in found.checks], troubles=found.troubles)
