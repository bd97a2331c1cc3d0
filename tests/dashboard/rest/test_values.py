"""An answer of REST is read from the value that it carries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from dashboard.api.operations import api
from dashboard.rest.values import FromSeconds, MaybeFromMs, Out, named


@dataclass(frozen=True, slots=True)
class Queue:
    broker_name: str
    written_ms: int
    read_at: float = 1.5
    secret: str = "kept"

    @property
    def key(self) -> str:
        return f"{self.broker_name}.0"


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    queues: tuple[Queue, ...]


class QueueOut(Out):
    broker: str = named("broker_name")
    key: str
    written_at: MaybeFromMs = named("written_ms")
    read_at: FromSeconds


class TopicOut(Out):
    name: str
    queues: list[QueueOut]
    level: str


def test_fields_properties_and_values_within_come_under_their_names_in_rest_and_nothing_else() -> None:
    topic = Topic("orders", (Queue("a", 1500), Queue("b", 0)))
    out = TopicOut.of(topic, level="good")
    assert out.dict() == {
        "name": "orders",
        "level": "good",
        "queues": [
            {"broker": "a", "key": "a.0", "written_at": datetime.fromtimestamp(1.5, UTC),
             "read_at": datetime.fromtimestamp(1.5, UTC)},
            {"broker": "b", "key": "b.0", "written_at": None, "read_at": datetime.fromtimestamp(1.5, UTC)},
        ],
    }  # fmt: skip


def test_what_a_value_lacks_is_an_error_and_not_a_null() -> None:
    with pytest.raises(AttributeError, match="level"):
        TopicOut.of(Topic("orders", ()))
    with pytest.raises(ValidationError, match="name"):
        TopicOut.of(Topic(None, ()), level="good")  # type: ignore[arg-type]


def test_an_answer_within_an_answer_is_taken_as_it_is() -> None:
    queue = QueueOut.of(Queue("a", 1500))
    assert TopicOut(name="orders", queues=[queue], level="good").queues[0] is queue


def every(kind: type[Out]) -> list[type[Out]]:
    return [kind, *(found for below in kind.__subclasses__() for found in every(below))]


def test_no_field_takes_the_attribute_that_another_field_is_called_after() -> None:
    assert api.title, "all schemas are loaded with it"
    names = {
        (kind.__name__, name): str(field.validation_alias)
        for kind in every(Out)
        for name, field in kind.model_fields.items()
        if field.validation_alias
    }
    assert len(names) > 30
    kinds = {kind.__name__: kind for kind in every(Out)}
    assert [key for key, attribute in names.items() if attribute in kinds[key[0]].model_fields] == []
