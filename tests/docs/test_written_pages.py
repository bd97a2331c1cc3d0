"""Files that are written from the code say what the code says."""

from __future__ import annotations

from types import ModuleType

import pytest

from appliance.cli.admin.rest.client import API
from dashboard.api.operations import api
from tests.docs import compatibility_page, proofs_page, rest_operations, scale_page, settings_page


@pytest.mark.parametrize("writer", [settings_page, compatibility_page, scale_page, proofs_page])
def test_a_page_is_as_the_code_would_write_it(writer: ModuleType) -> None:
    written = writer.PAGE.read_text(encoding="utf-8")
    assert written == writer.page(written), f"write it again: python -m {writer.__name__}"


def test_the_shell_knows_rest_as_its_document_has_it() -> None:
    document = api.get_openapi_schema(path_prefix=f"{API}/")
    written = rest_operations.FILE.read_text(encoding="utf-8")
    assert written == rest_operations.operations(document), "write it again: python -m tests.docs.rest_operations"
