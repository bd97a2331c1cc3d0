"""Files that are written from the code say what the code says."""

from __future__ import annotations

from appliance.cli.admin.rest.client import API
from dashboard.api.operations import api
from tests.docs import compatibility_page, proofs_page, rest_operations, scale_page, settings_page


def test_the_settings_page_is_as_the_code_would_write_it() -> None:
    written = settings_page.PAGE.read_text(encoding="utf-8")
    assert written == settings_page.page(), "write it again: python -m tests.docs.settings_page"


def test_the_table_of_request_codes_is_as_the_code_would_write_it() -> None:
    written = compatibility_page.PAGE.read_text(encoding="utf-8")
    assert written == compatibility_page.page(written), "write it again: python -m tests.docs.compatibility_page"


def test_the_shell_knows_rest_as_its_document_has_it() -> None:
    document = api.get_openapi_schema(path_prefix=f"{API}/")
    written = rest_operations.FILE.read_text(encoding="utf-8")
    assert written == rest_operations.operations(document), "write it again: python -m tests.docs.rest_operations"


def test_the_table_of_what_a_rate_needs_is_as_the_program_works_it_out() -> None:
    written = scale_page.PAGE.read_text(encoding="utf-8")
    assert written == scale_page.page(written), "write it again: python -m tests.docs.scale_page"


def test_the_tables_of_clients_are_those_that_the_tests_run() -> None:
    written = proofs_page.PAGE.read_text(encoding="utf-8")
    assert written == proofs_page.page(written), "write it again: python -m tests.docs.proofs_page"
