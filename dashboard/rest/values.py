"""What schemas share. A body is a JSON object; a value of the wrong type is refused, not converted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Self

from ninja import Field, Query, Schema
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, ModelWrapValidatorHandler, model_validator

NUMBER_MAX = 1 << 53
Offset = Annotated[int, Query(ge=0, le=1_000_000)]  # of the first row that a list gives


class Given(Schema):
    """A body. Its form is asked for before its fields: a list has no fields, and would pass where all may be absent."""

    model_config = ConfigDict(strict=True)

    @model_validator(mode="wrap")
    @classmethod
    def _run_root_validator(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # Schema's own name
        if not isinstance(values, dict | cls):
            raise ValueError("this is not a JSON object")
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


def named(attribute: str) -> Any:
    """The field of an Out that the value calls otherwise."""
    return Field(validation_alias=attribute)


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
# What could not be asked: "broker-a: no answer".
Troubles = Annotated[list[str], BeforeValidator(lambda failures: [_sentence(one) for one in failures])]


def _sentence(failure: Any) -> str:
    return failure if isinstance(failure, str) else f"{failure.what}: {failure.reason}"
