"""REST keeps its shape: programs hold on to it."""

from __future__ import annotations

import copy

from dashboard.api.operations import api
from tests.dashboard.api.shape import FILE, shape


def test_rest_has_the_shape_that_is_written_down() -> None:
    found = shape(api.get_openapi_schema(path_prefix="/api/v1/"))
    assert found == FILE.read_text(encoding="utf-8"), "meant? then: python -m tests.dashboard.api.shape"


def test_the_document_is_made_once() -> None:
    assert api.get_openapi_schema(path_prefix="/api/v1/") is api.get_openapi_schema(path_prefix="/api/v1/")


def test_each_change_of_a_field_a_bound_or_a_refusal_shows() -> None:
    document = dict(api.get_openapi_schema(path_prefix="/api/v1/"))
    written = shape(document)
    for change in (
        lambda it: it["components"]["schemas"]["TopicList"]["properties"].pop("next"),
        lambda it: it["components"]["schemas"]["TopicIn"]["properties"]["write_queues"].update(maximum=7),
        lambda it: it["components"]["schemas"]["TopicIn"]["required"].append("perm"),
        lambda it: it["paths"]["/api/v1/topics"]["post"]["responses"].pop(409),
        lambda it: it["paths"].pop("/api/v1/groups/{name}/reset"),
    ):
        changed = copy.deepcopy(document)
        change(changed)
        assert shape(changed) != written
