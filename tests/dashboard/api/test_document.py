"""The OpenAPI document is true: made-up calls, good and bad ones, get only the answers that it describes.

schemathesis makes the calls from the document, always the same ones, and compares the answers with it. Each operation
gets a few: this looks for what a person did not think of, and the other tests for what one did.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis
import requests
import schemathesis
from django.http import HttpResponse
from django.test import AsyncClient
from ninja import Schema
from schemathesis.config import SchemathesisConfig
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dashboard.api.operations import api
from dashboard.cluster.gateway import Gateway
from dashboard.live.sampler import Sampler
from dashboard.models.management import User
from gantrymq.message.model import Message
from tests.dashboard.conftest import Topic, api_for
from tests.suite.long_runs import in_all

CALLS_OF_EACH_KIND = 2
# The first has no end, the second would end the token of these calls, the third would call made-up addresses.
LEFT_OUT = ("stream_news", "revoke_token", "test_alert_channel")
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance, response_headers_conformance]
NAMES = ("none-of-it", "in-the-document")
DEFAULT_SETTINGS = hypothesis.settings(
    derandomize=True, database=None, deadline=None, phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)  # fmt: skip


def made_up(operation: Any, mode: GenerationMode, count: int) -> list[Any]:
    """So many calls of one operation, the same each time."""
    found: list[Any] = []

    @hypothesis.settings(DEFAULT_SETTINGS, max_examples=count)
    @hypothesis.given(operation.as_strategy(generation_mode=mode))
    def draw(case: Any) -> None:
        found.append(case)

    draw()
    return found[:count]


async def answer_to(case: Any, headers: dict[str, str]) -> tuple[HttpResponse, Response]:
    """The dashboard's answer to a call, and the same as schemathesis reads it."""
    wanted = case.as_transport_kwargs(base_url="http://testserver")
    names = ("method", "url", "params", "json", "data", "files", "cookies")
    request = requests.Request(**{name: wanted[name] for name in names if name in wanted}).prepare()
    body = request.body or b""
    answer = await AsyncClient(raise_request_exception=False).generic(
        request.method or "GET", request.path_url, body.encode() if isinstance(body, str) else body,
        request.headers.get("Content-Type", "application/json"), headers=headers,
    )  # fmt: skip
    if answer.streaming:  # files: their content type is checked, what is in them by tests of their own
        content = b"".join([chunk async for chunk in answer.streaming_content])
    else:
        content = answer.content
    told = {name.lower(): [value] for name, value in answer.headers.items()}
    return answer, Response(answer.status_code, told, content, request, 0.0, verify=False)


def test_each_shape_of_the_document_has_a_name_of_its_own() -> None:
    """Of two with one name the document has the later one, and tells of the other what is not so."""
    names = Counter(shape.__name__ for shape in set(below(Schema)) if shape.__module__.startswith("dashboard."))
    assert names and [name for name, count in names.items() if count > 1] == []


def below(shape: type) -> Iterator[type]:
    for one in shape.__subclasses__():
        yield one
        yield from below(one)


async def test_each_answer_is_as_the_document_says(users: dict[str, User], gateway: Gateway, make_topic: Topic) -> None:
    await Sampler(gateway).sample()
    await make_topic(NAMES[1], messages=[Message(NAMES[1], b"x", keys="one")])
    document = copy.deepcopy(dict(api.get_openapi_schema(path_prefix="/api/v1/")))  # schemathesis changes it
    schema = schemathesis.openapi.from_dict(document, config=SchemathesisConfig.from_dict({}))
    headers = (await api_for(users["admin"], "admin")).headers
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {one.definition.raw["operationId"] for one in operations} >= set(LEFT_OUT)
    operations = [one for one in operations if one.definition.raw["operationId"] not in LEFT_OUT]
    assert len(operations) >= 40
    count, seen, wrong = in_all(CALLS_OF_EACH_KIND, long=100), set(), []
    for operation in sorted(operations, key=lambda one: (one.method == "delete", one.label)):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            for number, case in enumerate(made_up(operation, mode, count)):
                if "name" in case.path_parameters and mode is GenerationMode.POSITIVE:
                    case.path_parameters["name"] = NAMES[number % 2]
                answer, response = await answer_to(case, headers)
                seen.add(answer.status_code)
                try:
                    case.validate_response(response, checks=CHECKS)
                except schemathesis.errors.FailureGroup as failures:
                    wrong.append(f"{operation.label}: {answer.status_code}: {failures.exceptions}"[:2000])
                if answer.status_code == 500:
                    wrong.append(f"{operation.label}: 500 to {response.request.url} {response.request.body!r}"[:600])
    assert wrong == []
    assert {200, 201, 204, 404, 422} <= seen
