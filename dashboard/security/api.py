"""/api/v1/security: what the page Security shows. Needs a token of the scope admin."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest

from dashboard.access.permissions import Permission
from dashboard.cluster.gateway import gateway
from dashboard.rest.auth import Token
from dashboard.rest.checks import CheckOut
from dashboard.rest.lists import Listed
from dashboard.rest.routes import Routes
from dashboard.security.review import review

router = Routes(asks_cluster=True)
PEOPLE = Token(Permission.USERS_WRITE)


class CheckList(Listed[CheckOut]):
    """The worst first."""


@router.get("", auth=PEOPLE, summary="Security findings")
async def get_security(request: HttpRequest) -> CheckList:
    found = await review(gateway(), settings.APPLIANCE)
    return CheckList.whole(map(CheckOut.of, found.checks), found.troubles)
