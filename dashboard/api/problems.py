"""What REST operations share: their refusals, and who called."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.api.schemas import Problem
from gantrymq.errors import GantryError

REFUSALS = {401: Problem, 403: Problem, 404: Problem, 409: Problem, 422: Problem, 502: Problem, 503: Problem}


class FormProblem(GantryError):
    """The body was refused; `problems` maps fields to sentences."""

    def __init__(self, problems: dict[str, list[str]]) -> None:
        super().__init__("some fields can't be taken")
        self.problems = problems


def caller(request: HttpRequest) -> dict[str, Any]:
    """The account and the token's start, for the log."""
    principal = request.auth  # type: ignore[attr-defined]
    return {"username": str(principal.user), "token": principal.token.prefix if principal.token else ""}
