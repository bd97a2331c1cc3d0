"""The guard of a REST operation: a bearer token whose account and scope hold the permission."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.security import HttpBearer

from dashboard.access.permissions import Permission, bearer_principal, enter
from gantrymq.errors import GantryError


class Forbidden(GantryError):
    """The token is good, but not for this."""


class Token(HttpBearer):
    """`auth=Token(Permission.X)` on an operation."""

    def __init__(self, permission: Permission) -> None:
        super().__init__()
        self.permission = permission

    async def __call__(self, request: HttpRequest) -> Any:
        """The principal; None is answered with 401 by ninja. Raises Forbidden, NameRefused."""
        principal = await bearer_principal(request)
        if principal is not None and not principal.may(self.permission):
            raise Forbidden(f"This token does not allow that; it needs {self.permission.value}.")
        if principal is not None:
            enter(principal, self.permission, request.resolver_match.kwargs if request.resolver_match else {})
        return principal

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        raise NotImplementedError  # __call__ does it all
