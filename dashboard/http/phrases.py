"""The phrase of an HTTP status, as RFC 9110 has it: Python's own are those of RFC 7231 before 3.13."""

from __future__ import annotations

from http import HTTPStatus

RENAMED = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large",
    HTTPStatus.REQUEST_URI_TOO_LONG: "URI Too Long",
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: "Range Not Satisfiable",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Content",
}


def phrase_of(status: int) -> str:
    """The words for a status, the same with every Python."""
    found = HTTPStatus(status)
    return RENAMED.get(found, found.phrase)
