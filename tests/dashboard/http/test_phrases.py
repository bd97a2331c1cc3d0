"""The words behind a status are the same whichever Python serves the pages."""

from __future__ import annotations

import sys
from http import HTTPStatus

from dashboard.http.phrases import RENAMED, phrase_of


def test_the_words_are_those_of_rfc_9110() -> None:
    assert [phrase_of(status) for status in (200, 404, 413, 414, 416, 422)] == [
        "OK", "Not Found", "Content Too Large", "URI Too Long", "Range Not Satisfiable", "Unprocessable Content",
    ]  # fmt: skip


def test_only_what_an_older_python_says_in_other_words_is_listed() -> None:
    """Python has RFC 9110's words since 3.13."""
    listed = set() if sys.version_info >= (3, 13) else set(RENAMED)
    assert {status for status in HTTPStatus if phrase_of(status) != status.phrase} == listed
