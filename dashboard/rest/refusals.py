"""What REST operations share: their refusals, and who called."""

from __future__ import annotations

from typing import Literal, TypeVar

from django.http import HttpRequest
from ninja import Field, Schema

from dashboard.forms.base import BaseForm
from gantrymq.errors import GantryError


class Problem(Schema):
    """Any refusal, as RFC 9457 has it. fields: what is wrong with each, when the body was refused."""

    type: Literal["about:blank"]
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    fields: dict[str, list[str]] | None = None


class FormProblem(GantryError):
    """The body was refused; `problems` maps fields to sentences."""

    def __init__(self, problems: dict[str, list[str]]) -> None:
        super().__init__("some fields can't be taken")
        self.problems = problems


FormT = TypeVar("FormT", bound=BaseForm)


def checked(form: FormT, **names: str) -> FormT:
    """The form, whose `cleaned_data` can be used now. names: what REST calls its fields.

    Raises FormProblem.
    """
    if not form.is_valid():
        raise FormProblem({names.get(name, name): texts for name, texts in form.problems().items()})
    return form


class NotPossible(GantryError):
    """It can't be done now, or there is no such thing; the text is a sentence."""

    def __init__(self, sentence: str, *, status: int = 409) -> None:
        super().__init__(sentence)
        self.status = status


def caller(request: HttpRequest) -> str:
    """The account's name."""
    return str(request.auth.user)  # type: ignore[attr-defined]
