"""JSON values as what an annotation says: dataclasses, typed dicts and plain types, checked on the way.

Models of pydantic and structs of msgspec check themselves, wherever they stand. Nothing is guessed: "1" is no int, and
a field that is missing, or that the class does not know, is an error which names the place.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from gantrymq.errors import ConfigError

Reader = Callable[[Any], Any]

_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    UUID: UUID,
}


class ShapeError(ValueError):
    """The value is none of the type. `place`: where in it, such as "lines[2].price"."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(problem, place)
        self.problem = problem
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}" if self.place else self.problem

    def inside(self, place: str) -> ShapeError:
        """The same, seen from around it."""
        joined = f"{place}{self.place}" if self.place.startswith("[") else f"{place}.{self.place}".rstrip(".")
        return ShapeError(self.problem, joined)


_readers: dict[Any, Reader] = {}


def reader_of(kind: Any) -> Reader:
    """What makes a value of this type out of what JSON gives. ConfigError for a type it can't make."""
    found = _readers.get(kind)
    if found is None:
        _readers[kind] = lambda value: _readers[kind](value)  # until it is made: a class may hold itself
        try:
            found = _readers[kind] = _made_reader(kind)
        except BaseException:
            del _readers[kind]
            raise
    return found


def _made_reader(kind: Any) -> Reader:
    if kind is Any or kind is object:
        return lambda value: value
    if typing.get_origin(kind) is typing.Annotated:
        return reader_of(typing.get_args(kind)[0])
    simple = _simple_reader(kind)
    if simple is not None:
        return simple
    if isinstance(kind, type):
        return _class_reader(kind)
    return _generic_reader(kind)


def _simple_reader(kind: Any) -> Reader | None:
    if kind is None or kind is types.NoneType:
        return functools.partial(_read_exactly, types.NoneType)
    if kind is float:
        return _read_float
    if kind is Decimal:
        return _read_decimal
    if kind in (str, int, bool, list, dict):
        return functools.partial(_read_exactly, kind)
    if kind in _FROM_TEXT:
        return functools.partial(_read_text, kind, _FROM_TEXT[kind])
    return None


def _class_reader(kind: type) -> Reader:
    if (validate := pydantic_validator(kind)) is not None:
        return functools.partial(_read_model, validate)
    if is_msgspec_struct(kind):
        convert: Callable[..., Any] = sys.modules["msgspec"].convert
        return functools.partial(_read_model, lambda value: convert(value, kind))
    if issubclass(kind, enum.Enum):
        return functools.partial(_read_model, kind)
    if dataclasses.is_dataclass(kind):
        return functools.partial(_read_fields, kind, _Fields.of_dataclass(kind))
    if typing.is_typeddict(kind):
        return functools.partial(_read_fields, dict, _Fields.of_typed_dict(kind))
    raise ConfigError(f"{kind!r}: no payload can be made of this type: use a dataclass, a model, or a plain type")


def _generic_reader(kind: Any) -> Reader:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return functools.partial(_read_union, kind, [reader_of(each) for each in inner])
    if origin is typing.Literal:
        return functools.partial(_read_literal, inner)
    if origin in (list, Sequence, set, frozenset) or (origin is tuple and inner[1:] == (...,)):
        make = list if origin is Sequence else origin
        return functools.partial(_read_list, make, reader_of(inner[0]))
    if origin in (dict, Mapping) and inner[0] is str:
        return functools.partial(_read_dict, reader_of(inner[1]))
    if origin is tuple:
        return functools.partial(_read_tuple, [reader_of(each) for each in inner])
    raise ConfigError(f"{kind!r}: no payload can be made of this type: use a dataclass, a model, or a plain type")


def pydantic_validator(kind: type) -> Callable[[Any], Any] | None:
    """What pydantic makes a value of the class with; None when it is none of pydantic's."""
    if "__pydantic_validator__" not in vars(kind):
        return None
    validate: Callable[[Any], Any] = vars(kind)["__pydantic_validator__"].validate_python
    return validate


def is_msgspec_struct(kind: type) -> bool:
    """Whether the class is one of msgspec's."""
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and issubclass(kind, msgspec.Struct)


@dataclasses.dataclass(frozen=True)
class _Fields:
    """The fields of a class: how each is read, and which have to be there."""

    readers: dict[str, Reader]
    required: frozenset[str]

    @classmethod
    def of_dataclass(cls, kind: Any) -> _Fields:
        hints = typing.get_type_hints(kind, include_extras=True)
        own = [field for field in dataclasses.fields(kind) if field.init]
        needed = [f.name for f in own if f.default is f.default_factory is dataclasses.MISSING]
        return cls({field.name: reader_of(hints[field.name]) for field in own}, frozenset(needed))

    @classmethod
    def of_typed_dict(cls, kind: Any) -> _Fields:
        marked = {typing.NotRequired, typing.Required}
        plain: dict[str, Any] = {}
        required: set[str] = set(kind.__required_keys__)  # it knows no marks in annotations that are texts
        for name, hint in typing.get_type_hints(kind, include_extras=True).items():
            mark = typing.get_origin(hint)
            plain[name] = typing.get_args(hint)[0] if mark in marked else hint
            if mark is typing.NotRequired:
                required.discard(name)
            elif mark is typing.Required:
                required.add(name)
        return cls({name: reader_of(hint) for name, hint in plain.items()}, frozenset(required))


def _read_exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise _not_a(kind, value)
    return value


def _read_float(value: Any) -> float:
    if type(value) not in (int, float):
        raise _not_a(float, value)
    return float(value)


def _read_decimal(value: Any) -> Decimal:
    if type(value) not in (int, float, str):
        raise _not_a(Decimal, value)
    try:
        return Decimal(str(value))
    except ArithmeticError:
        raise _not_a(Decimal, value) from None


def _read_text(kind: type, parse: Callable[[str], Any], value: Any) -> Any:
    if type(value) is not str:
        raise _not_a(kind, value)
    try:
        return parse(value)
    except ValueError:
        raise _not_a(kind, value) from None


def _read_model(make: Callable[[Any], Any], value: Any) -> Any:
    try:
        return make(value)
    except ValueError as exc:  # of pydantic, msgspec and enums alike
        raise ShapeError(str(exc)) from exc


def _read_fields(make: Callable[..., Any], fields: _Fields, value: Any) -> Any:
    if type(value) is not dict:
        raise ShapeError(f"an object is wanted, not {_kind(value)}")
    if missing := fields.required - value.keys():
        raise ShapeError("it is missing", min(missing))
    if unknown := value.keys() - fields.readers.keys():
        raise ShapeError("there is no such field", min(unknown))
    found = {name: _inside(name, fields.readers[name], each) for name, each in value.items()}
    try:
        return make(**found)
    except ValueError as exc:  # of a __post_init__
        raise ShapeError(str(exc)) from exc


def _read_list(make: Callable[[Any], Any], read: Reader, value: Any) -> Any:
    if type(value) is not list:
        raise ShapeError(f"a list is wanted, not {_kind(value)}")
    return make([_inside(f"[{at}]", read, each) for at, each in enumerate(value)])


def _read_tuple(readers: list[Reader], value: Any) -> Any:
    if type(value) is not list or len(value) != len(readers):
        raise ShapeError(f"a list of {len(readers)} is wanted, not {_kind(value)}")
    return tuple([_inside(f"[{at}]", readers[at], each) for at, each in enumerate(value)])


def _read_dict(read: Reader, value: Any) -> Any:
    if type(value) is not dict:
        raise ShapeError(f"an object is wanted, not {_kind(value)}")
    return {name: _inside(name, read, each) for name, each in value.items()}


def _read_union(kind: Any, readers: list[Reader], value: Any) -> Any:
    problems: list[ShapeError] = []
    for read in readers:
        try:
            return read(value)
        except ShapeError as exc:
            problems.append(exc)
    deepest = max(problems, key=lambda problem: len(problem.place))
    raise deepest if deepest.place else ShapeError(f"{kind} is wanted, not {_kind(value)}")


def _read_literal(wanted: tuple[Any, ...], value: Any) -> Any:
    for each in wanted:
        if type(each) is type(value) and each == value:
            return each
    raise ShapeError(f"one of {', '.join(map(repr, wanted))} is wanted, not {_kind(value)}")


def _inside(place: str, read: Reader, value: Any) -> Any:
    try:
        return read(value)
    except ShapeError as exc:
        raise exc.inside(place) from None


def _not_a(kind: type, value: Any) -> ShapeError:
    return ShapeError(f"{kind.__name__} is wanted, not {_kind(value)}")


def _kind(value: Any) -> str:
    return f"{type(value).__name__} ({value!r:.40})"
