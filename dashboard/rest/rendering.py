"""How answers are written: JSON in which a moment always has one form, 2026-11-21T07:30:00.000Z."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder


class Encoder(NinjaJSONEncoder):
    """Moments in UTC, to the millisecond."""

    def default(self, o: Any) -> Any:
        if isinstance(o, datetime):
            return o.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
        return super().default(o)


class Renderer(JSONRenderer):
    """Answers of REST."""

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> str:
        return json_text(data)


def json_text(data: Any) -> str:
    """Also for events of a stream."""
    return json.dumps(data, cls=Encoder, ensure_ascii=False)
