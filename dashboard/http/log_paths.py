"""Log lines of the web process hold paths, never what follows the question mark: tokens stand there.

Django attaches the request to its lines, Daphne and Twisted print addresses, exceptions quote them. So it is the
formatter that cuts, the last who sees a line.
"""

from __future__ import annotations

import copy
import logging
import re

from django.http import HttpRequest

from appliance.process.logs import FactsFormatter
from dashboard.http.request_ids import request_id

_QUERY = re.compile(r"(/[^\s?]*)\?\S+")


class PathsOnlyFormatter(FactsFormatter):
    """Writes `request=POST /first-run` for a request, its id, and no query string anywhere in a line or a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        request = getattr(record, "request", None)
        if isinstance(request, HttpRequest):
            record = copy.copy(record)  # other handlers keep theirs
            record.request = f"{request.method} {request.path}"
        if (known := request_id()) and not hasattr(record, "request_id"):
            record = copy.copy(record)
            record.request_id = known
        return without_queries(super().format(record))


def without_queries(text: str) -> str:
    """The text with the query string of each address in it cut off."""
    return _QUERY.sub(r"\1", text)
