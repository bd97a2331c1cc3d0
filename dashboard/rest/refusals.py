"""What REST operations share: their refusals, and who called."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Schema

from gantrymq.errors import GantryError


class Problem(Schema):
    """Any refusal, as RFC 9457 has it. fields: what is wrong with each, when the body was refused."""

    type: Literal["about:blank"]
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    fields: dict[str, list[str]] | None = None


# 400: the request could not be read; 405: the address has other methods; 422: what was read can't be taken.
REFUSALS = dict.fromkeys((400, 401, 403, 404, 405, 409, 422, 502, 503), Problem)


class FormProblem(GantryError):
    """The body was refused; `problems` maps fields to sentences."""

    def __init__(self, problems: dict[str, list[str]]) -> None:
        super().__init__("some fields can't be taken")
        self.problems = problems


class NotPossible(GantryError):
    """It can't be done now, or there is no such thing; the text is a sentence."""

    def __init__(self, sentence: str, *, status: int = 409) -> None:
        super().__init__(sentence)
        self.status = status


def caller(request: HttpRequest) -> dict[str, Any]:
    """The account and the token's start, for the log."""
    principal = request.auth  # type: ignore[attr-defined]
    return {"username": str(principal.user), "token": principal.token.prefix if principal.token else ""}
