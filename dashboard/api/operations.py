"""REST under /api/v1: the pages' own services, for programs. Bearer tokens only; cookies open nothing here."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, ValidationError
from ninja.openapi.schema import OpenAPISchema

from dashboard.access.permissions import Permission
from dashboard.alerts import api as alerts
from dashboard.audit import api as audit
from dashboard.brokers import api as brokers
from dashboard.clients import api as clients
from dashboard.cluster.errors import GatewayError
from dashboard.connect import api as connect
from dashboard.dead_letters import api as dead_letters
from dashboard.definitions import api as definitions
from dashboard.groups import api as groups
from dashboard.history import api as history
from dashboard.http.problems import MEDIA_TYPE, problem
from dashboard.latency import api as latency
from dashboard.limits.names import NameRefused
from dashboard.messages import api as messages
from dashboard.name_servers import api as name_servers
from dashboard.overview import api as cluster
from dashboard.overview import live_api as live
from dashboard.people import api as users
from dashboard.reports import api as reports
from dashboard.rest.auth import Forbidden
from dashboard.rest.refusals import FormProblem, NotPossible
from dashboard.rest.rendering import Renderer
from dashboard.security import api as security
from dashboard.topics import api as topics

VERSION = "1.0.0"


class Api(NinjaAPI):
    """Describes refusals as what they are: problem documents."""

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: Any = None) -> OpenAPISchema:
        """The document, made once for each prefix, because that takes seconds of a core. Not to be changed."""
        return _document(self, path_prefix)

    def make_document(self, path_prefix: str | None) -> OpenAPISchema:
        document = super().get_openapi_schema(path_prefix=path_prefix)
        for path in document["paths"].values():
            for operation in path.values():
                for status, answer in operation["responses"].items():
                    if int(status) >= 400 and "application/json" in answer.get("content", {}):
                        answer["content"] = {MEDIA_TYPE: answer["content"]["application/json"]}
                    if int(status) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:  # before it is known what is asked
                        answer["content"] = {"text/plain": {"schema": {"type": "string"}}}
        _say_what_is_always_there(document)
        return document


@functools.cache
def _document(api: Api, path_prefix: str | None) -> OpenAPISchema:
    return api.make_document(path_prefix)


def _say_what_is_always_there(document: Mapping[str, Any]) -> None:
    """An answer has each of its fields, those with a default, too: a generated client need not ask for it."""
    given: set[str] = set()
    answered: set[str] = set()
    for path in document["paths"].values():
        for operation in path.values():
            given |= _named_in(operation.get("requestBody"), document)
            good = [answer for status, answer in operation["responses"].items() if int(status) < 400]
            answered |= _named_in(good, document)
    for name in answered - given:
        schema = document["components"]["schemas"][name]
        if "properties" in schema:
            schema["required"] = list(schema["properties"])


def _named_in(part: Any, document: Mapping[str, Any]) -> set[str]:
    """The schemas that this part of the document needs."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        match waiting.pop():
            case {"$ref": str(ref)}:
                name = ref.rpartition("/")[2]
                if name not in found:
                    found.add(name)
                    waiting.append(document["components"]["schemas"][name])
            case dict(fields):
                waiting += fields.values()
            case list(items):
                waiting += items
    return found


api = Api(
    title="GantryMQ",
    version=VERSION,
    description="Topics, messages, consumer groups, dead letters, brokers' settings and the state of the cluster. "
    "Send `Authorization: Bearer gmq_…`; tokens are made in the dashboard.",
    docs_url=None,  # served by document.py, behind the log-in
    openapi_url=None,
    urls_namespace="api",
    renderer=Renderer(),
)
api.add_router("/topics", topics.router, tags=["topics"])
api.add_router("/topics", messages.router, tags=["messages"])
api.add_router("/messages", messages.by_id, tags=["messages"])
api.add_router("/traces", messages.told, tags=["messages"])
api.add_router("/topic-changes", topics.changes, tags=["topics"])
api.add_router("/groups", groups.router, tags=["groups"])
api.add_router("/dead-letters", dead_letters.router, tags=["dead letters"])
api.add_router("/brokers", brokers.router, tags=["brokers"])
api.add_router("/machine", brokers.machine, tags=["brokers"])
api.add_router("/connect", connect.router, tags=["cluster"])
api.add_router("/clients", clients.router, tags=["clients"])
api.add_router("/reports", reports.router, tags=["reports"])
api.add_router("/history", history.router, tags=["cluster"])
api.add_router("/latency", latency.router, tags=["cluster"])
api.add_router("/alerts", alerts.router, tags=["alerts"])
api.add_router("/audit", audit.router, tags=["audit"])
api.add_router("/live", live.router, tags=["cluster"])
api.add_router("/tokens", users.tokens, tags=["accounts"])
api.add_router("/users", users.users, tags=["accounts"])
api.add_router("/account", users.account, tags=["accounts"])
api.add_router("/invitations", users.invited, tags=["accounts"])
api.add_router("/security", security.router, tags=["accounts"])
api.add_router("/cluster", cluster.router, tags=["cluster"])
api.add_router("/cluster", name_servers.router, tags=["cluster"])
api.add_router("/definitions", definitions.router, tags=["cluster"])


@api.exception_handler(GatewayError)
def _gateway_error(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(exc.status, str(exc))


@api.exception_handler(NotPossible)
def _not_possible(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(exc.status, str(exc))


@api.exception_handler(FormProblem)
def _form_problem(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(422, "Some fields are not valid.", fields=exc.problems)


@api.exception_handler(ValidationError)
def _validation_error(request: HttpRequest, exc: Any) -> HttpResponse:
    fields: dict[str, list[str]] = {}
    for error in exc.errors:
        fields.setdefault(str(error["loc"][-1]), []).append(error["msg"])
    return problem(422, "Some fields are not valid.", fields=fields)


@api.exception_handler(AuthenticationError)
def _not_authenticated(request: HttpRequest, exc: Any) -> HttpResponse:
    response = problem(401, "Send a valid API token.")
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(NameRefused)
@api.exception_handler(Forbidden)
def _forbidden(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(403, str(exc))


def _guarded_urls() -> list[URLPattern]:
    """REST views as the pages' guard sees them: open, because each operation checks its own token (see test_access)."""
    patterns = api.urls[0]  # asked once: each asking makes new views
    shown = [pattern for pattern in patterns if isinstance(pattern, URLPattern) and pattern.name != "api-root"]
    for pattern in shown:
        view: Any = pattern.callback
        view.permission = Permission.OPEN
        view.checks_itself = True
    return shown


urlpatterns = _guarded_urls()
