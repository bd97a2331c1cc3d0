"""docs/settings.md says what the code says."""

from __future__ import annotations

from tests.docs import compatibility_page, settings_page


def test_the_settings_page_is_as_the_code_would_write_it() -> None:
    written = settings_page.PAGE.read_text(encoding="utf-8")
    assert written == settings_page.page(), "write it again: python -m tests.docs.settings_page"


def test_the_table_of_request_codes_is_as_the_code_would_write_it() -> None:
    written = compatibility_page.PAGE.read_text(encoding="utf-8")
    assert written == compatibility_page.page(written), "write it again: python -m tests.docs.compatibility_page"
