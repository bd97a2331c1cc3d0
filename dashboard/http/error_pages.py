"""Errors as cards: what happened, what to do. Never a stack, a path or a setting."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, ProgrammingError
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.shortcuts import render
from django.urls import is_valid_path, reverse
from django.utils.translation import gettext, gettext_lazy

from dashboard.cluster.errors import GatewayError, GroupNotFound, MessageNotFound, TopicNotFound
from dashboard.database.state import state
from dashboard.http.problems import problem
from dashboard.http.request_ids import request_id
from dashboard.language.sentences import again
from dashboard.limits.names import NameRefused

BUGS = (DataError, IntegrityError, ProgrammingError)  # errors of a view, which don't mean that the database is bad
TITLES = {
    404: gettext_lazy("Not found"),
    409: gettext_lazy("Not possible"),
    502: gettext_lazy("The broker rejected it"),
    503: gettext_lazy("The cluster does not answer"),
}


def error_card(
    request: HttpRequest, status: int, title: str, reason: str, advice: str = "", back: tuple[str, str] | None = None
) -> HttpResponse:
    """An error page; for a fragment only the card. back: (address, name) of the page to go on from."""
    # What is not there for now comes back at the same address, and other pages may lack it, too.
    is_shown_again = status == 503 and request.method in ("GET", "HEAD")
    links = [(request.get_full_path(), gettext("Reload this page"))] if is_shown_again else [_first_page(request)]
    if back is not None and back not in links:
        links.insert(0, back)
    template = "errors/_card.html" if request.headers.get("HX-Request") else "errors/error.html"
    context = {"status": status, "title": title, "reason": reason, "advice": advice, "links": links}
    response = render(request, template, context, status=status)
    if request.headers.get("HX-Request"):
        response.headers["HX-Reswap"] = "innerHTML"
    return response


def _first_page(request: HttpRequest) -> tuple[str, str]:
    """Where the account's pages begin: the Overview is closed to one that is limited to some names."""
    principal = getattr(request, "principal", None)
    if principal is not None and principal.names.is_limited:
        return reverse("topics"), gettext("Topics")
    return reverse("overview"), gettext("Overview")


def gateway_error(request: HttpRequest, exc: GatewayError) -> HttpResponse:
    """What the cluster could not do, as a page."""
    title, back = str(TITLES.get(exc.status, gettext_lazy("That did not work"))), None
    if isinstance(exc, MessageNotFound):
        title, back = gettext("No such message"), _messages_page(request)
    elif isinstance(exc, TopicNotFound):
        title, back = gettext("No such topic"), (reverse("topics"), gettext("Topics"))
    elif isinstance(exc, GroupNotFound):
        title, back = gettext("No such group"), (reverse("groups"), gettext("Groups"))
    elif request.method == "POST":
        back = _came_from(request)
    return error_card(request, exc.status, title, str(exc), gettext(exc.advice) if exc.advice else "", back)


def _came_from(request: HttpRequest) -> tuple[str, str] | None:
    """The page of this dashboard whose form was sent."""
    address = urlsplit(request.headers.get("Referer", ""))
    if address.netloc != request.get_host() or not is_valid_path(address.path):
        return None
    return address.path, gettext("Back")


def _messages_page(request: HttpRequest) -> tuple[str, str]:
    """The newest messages of the topic that the address names, else where messages are found."""
    name = request.resolver_match.kwargs.get("name") if request.resolver_match else None
    if name:
        return reverse("topic", args=[name]), gettext("Newest messages")
    return reverse("traces"), gettext("Messages and traces")


def _plain(request: HttpRequest, status: int, title: str, reason: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem(status, reason)
    return error_card(request, status, title, reason)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain(request, 400, gettext("Not understood"), gettext("This page does not understand the request."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    told = str(exception) if isinstance(exception, NameRefused) else gettext("You are not allowed to do this.")
    return _plain(request, 403, gettext("Not allowed"), told)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    is_page = request.method in ("GET", "HEAD") and not request.path.startswith(settings.STATIC_URL)
    if is_page and (path := _other_slash(request.path)) is not None:
        query = request.META.get("QUERY_STRING")
        return HttpResponsePermanentRedirect(f"{path}?{query}" if query else path)
    return _plain(request, 404, gettext("Not found"), gettext("There is nothing at this address."))


def _other_slash(path: str) -> str | None:
    """The address that was meant when only the slash at the end is wrong; None when that is no page either."""
    other = path.rstrip("/") if path.endswith("/") else f"{path}/"
    return other if other.startswith("/") and not other.startswith("//") and is_valid_path(other) else None


def database_unusable(request: HttpRequest, why: str) -> HttpResponse:
    """No page without the dashboard's own database; brokers have nothing to do with it."""
    response = _plain(
        request,
        503,
        gettext("The dashboard can't show this"),
        (gettext("%(why)s Brokers keep running.") % {"why": again(why)}),
    )
    response.headers["Retry-After"] = "5"
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    failure = sys.exc_info()[1]  # Django calls us while it handles what was raised
    if isinstance(failure, DatabaseError) and not isinstance(failure, BUGS):
        return database_unusable(request, state.noticed(failure))
    told = gettext("Something went wrong in GantryMQ. The appliance's log has the details.")
    if request.path.startswith("/api/"):
        return problem(500, told)
    advice = gettext("Try again. If the error comes back, search the log for this request ID: %(id)s") % {
        "id": request_id()
    }
    return error_card(request, 500, gettext("Internal error"), told, advice, _came_from(request))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _plain(
        request,
        403,
        gettext("Not accepted"),
        gettext("This form is too old or came from elsewhere. Load the page and try again."),
    )
