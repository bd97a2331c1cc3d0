"""The words behind a status are the same whichever Python serves the pages."""

from __future__ import annotations

import sys
from http import HTTPStatus

import pytest

from dashboard.http.phrases import RENAMED, phrase_of


def test_the_words_are_those_of_rfc_9110() -> None:
    assert [phrase_of(status) for status in (200, 404, 413, 414, 416, 422)] == [
        "OK", "Not Found", "Content Too Large", "URI Too Long", "Range Not Satisfiable", "Unprocessable Content",
    ]  # fmt: skip


@pytest.mark.skipif(sys.version_info < (3, 13), reason="an older Python has the words of RFC 7231 for these")
def test_python_agrees_since_it_has_them() -> None:
    assert {status: status.phrase for status in HTTPStatus} == {status: phrase_of(status) for status in HTTPStatus}


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python has these words itself")
def test_only_what_python_says_in_other_words_is_listed() -> None:
    assert {status for status in HTTPStatus if phrase_of(status) != status.phrase} == set(RENAMED)
