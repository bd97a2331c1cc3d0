"""What schemas share. A body is a JSON object; a value of the wrong type is refused, not converted."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from ninja import Field, Schema
from pydantic import BeforeValidator, ConfigDict, ModelWrapValidatorHandler, model_validator

NUMBER_MAX = 1 << 53
Key = Annotated[int, Field(ge=1, lt=1 << 63)]  # of a row; the database knows no larger one
OPEN = ConfigDict(extra="ignore")  # of answers with the fields of a body: they may get more fields one day
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*")


class Given(Schema):
    """A body. A field that it does not have is refused: with a letter missing it would pass, and nothing would change.

    Its form is asked for before its fields: a list has no fields, and would pass where all may be absent.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # Schema's own name
        if not isinstance(values, dict | cls):
            raise ValueError("this is not a JSON object")
        return handler(values)


def _as_moment(value: Any) -> datetime:
    """Numbers are refused: 0.5 is no moment, and 1970 is not meant."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise ValueError(MOMENT_WANTED)
    try:
        found = datetime.fromisoformat(value.upper())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(MOMENT_WANTED) from None


# What comes in: a moment as ISO 8601 has it, in UTC unless it names a zone. JSON has no type for it.
MOMENT_WANTED = "a moment is a text such as 2026-11-21T07:30:00Z"
Moment = Annotated[datetime, BeforeValidator(_as_moment), Field(strict=False)]


def text_of(moment: datetime | None) -> str:
    """As the pages' forms take it."""
    return "" if moment is None else moment.isoformat()


class Out(Schema):
    """An answer, read from the value that it carries: each field from the attribute of its name, or the `named` one."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # Schema's own name
        return values if isinstance(values, cls) else handler(values)

    @classmethod
    def of(cls, value: Any, /, **more: Any) -> Self:
        """more: the fields that the value does not have as they are given."""
        fields = {name: field.validation_alias or name for name, field in cls.model_fields.items() if name not in more}
        return cls(**{name: getattr(value, str(attribute)) for name, attribute in fields.items()}, **more)


def named(attribute: str, default: Any = ...) -> Any:
    """The field of an Out that the value calls otherwise."""
    return Field(default, validation_alias=attribute)


def moment(at_ms: Any) -> Any:
    """A stored timestamp as a moment, None for never."""
    return at_ms if not isinstance(at_ms, int) else datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms > 0 else None


def _of_seconds(at: Any) -> Any:
    return datetime.fromtimestamp(at, UTC) if isinstance(at, float | int) else at


# Moments of values, which count milliseconds or seconds; None: never.
FromMs = Annotated[datetime, BeforeValidator(moment)]
MaybeFromMs = Annotated[datetime | None, BeforeValidator(moment)]
FromSeconds = Annotated[datetime, BeforeValidator(_of_seconds)]
MaybeFromSeconds = Annotated[datetime | None, BeforeValidator(_of_seconds)]
