"""What schemas share. A body is a JSON object; a value of the wrong type is refused, not converted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from ninja import Field, Schema
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, ModelWrapValidatorHandler, model_validator

NUMBER_MAX = 1 << 53


class Given(Schema):
    """A body. Its form is asked for before its fields: a list has no fields, and would pass where all may be absent."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # Schema's own name
        if not isinstance(values, dict | cls):
            raise ValueError("this is no JSON object")
        return handler(values)


def _as_text(value: Any) -> Any:
    if not isinstance(value, str | datetime):
        raise ValueError("a moment is a text as ISO 8601 has it")
    return value


# JSON has no type for a moment.
Moment = Annotated[datetime, BeforeValidator(_as_text), Field(strict=False)]
AwareMoment = Annotated[AwareDatetime, BeforeValidator(_as_text), Field(strict=False)]


class Order(Given):
    """The body of what can't simply be taken back: a field that it does not have is refused, so that a `dry_run` in
    the wrong place, or with a letter missing, does nothing.
    """

    model_config = ConfigDict(extra="forbid")


def moment(at_ms: int) -> datetime | None:
    """A stored timestamp, None for never."""
    return datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms > 0 else None
