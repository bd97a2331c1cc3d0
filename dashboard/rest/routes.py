"""Routes: a feature's REST operations, each declared once, by its function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from ninja import Router, Schema, Status

from dashboard.rest.refusals import Problem

# Without a token, with one that may not; and while the dashboard's database or the cluster can't be asked.
ALWAYS_REFUSED = (401, 403, 503)


class Refused(Schema):
    """What ninja makes of `Problem` for each status of each operation: once is enough, and it takes long."""

    response: Problem


class Routes(Router):
    """`@router.get(path, auth=…, summary=…)`: the operation has its function's name, and answers what that returns.

    With 200, or 204 when it returns nothing. `response` has the statuses that differ from that: `(201, 409)` answers
    with 201, and can refuse with 409. What follows from what it takes need not be said: 422 for any value, 400 for a
    body, 404 for a name in the path, 414 and 431 for an address. A function that is
    annotated with a response sends a file or a stream.

    asks_cluster: its operations ask brokers and name servers, whose refusal is 502.
    """

    def __init__(self, *, asks_cluster: bool = False) -> None:
        super().__init__()
        self._refused = (*ALWAYS_REFUSED, 502) if asks_cluster else ALWAYS_REFUSED

    def add_api_operation(self, path: str, methods: list[str], view_func: Callable[..., Any], **given: Any) -> None:
        signature = inspect.signature(view_func, eval_str=True)
        answer, wanted = signature.return_annotation, given.pop("response")
        said = wanted if isinstance(wanted, tuple) else (wanted,) if isinstance(wanted, int) else ()
        status = next((one for one in said if one < 400), 204 if answer is None else 200)
        is_sent_as_it_is = inspect.isclass(answer) and issubclass(answer, HttpResponseBase)

        @functools.wraps(view_func)
        async def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            found = await view_func(request, *args, **kwargs)
            return found if isinstance(found, HttpResponseBase) else Status(status, found)

        answered.__signature__ = signature  # type: ignore[attr-defined]
        refused = {*self._refused, *(one for one in said if one >= 400), *_follows(path, signature)}
        given["response"] = {status: None if is_sent_as_it_is else answer}
        given["operation_id"] = given["operation_id"] or view_func.__name__
        super().add_api_operation(path, methods, answered, **given)
        self.path_operations[path].operations[-1].response_models |= dict.fromkeys(sorted(refused), Refused)


def _follows(path: str, signature: inspect.Signature) -> set[int]:
    """The refusals that follow from what an operation takes: all but the request is a value of it.

    What stands in the address may make it too long, or the head.
    """
    names = signature.parameters.keys() - {"request"}
    has_body, has_address = "body" in names, bool(names - {"body"})
    found = {400: has_body, 404: "{" in path, 414: has_address, 422: bool(names), 431: has_address}
    return {status for status, follows in found.items() if follows}
