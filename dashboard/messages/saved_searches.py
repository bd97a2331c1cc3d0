"""Searches of a topic's messages that an account keeps for itself."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.contrib import messages as notes
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note_nothing
from dashboard.messages.forms import MessageSearchForm, SaveSearchForm
from dashboard.models.management import User
from dashboard.models.saved_searches import SavedSearch

ASKED = ("q", "since", "until", "queue")


def asked_query(given: Mapping[str, str]) -> str:
    """What is asked for, as in the page's address."""
    return urlencode({key: given[key] for key in ASKED if given.get(key)})


async def saved_searches(user: User, topic: str) -> list[SavedSearch]:
    """The account's, by name."""
    return [row async for row in SavedSearch.objects.filter(user=user, topic=topic).order_by("name")]


@requires(Permission.MESSAGES_READ, ACT)
async def save(request: HttpRequest, name: str) -> HttpResponse:
    """Keep what the fields ask for under a name; one of that name is replaced."""
    note_nothing(request)
    asked, form = MessageSearchForm(request.POST.dict()), SaveSearchForm(request.POST)
    query = asked_query(request.POST)
    address = f"{reverse('topic', args=[name])}?{query}"
    if not asked.is_valid():
        return redirect(address)  # the page says what is wrong
    if form.is_valid():
        trouble = await _keep(_user(request), name, form.cleaned_data["name"], query)
    else:
        [[trouble]] = form.problems().values()
    if trouble:
        notes.error(request, trouble)
    return redirect(address)


def _user(request: HttpRequest) -> User:
    user: User = request.principal.user  # type: ignore[attr-defined]
    return user


async def _keep(user: User, topic: str, name: str, query: str) -> str | None:
    """None, or why it is not kept."""
    if len(query) > SavedSearch.QUERY_MAX:
        return gettext("The search is too long to be saved.")
    own = SavedSearch.objects.filter(user=user, topic=topic)
    if await own.acount() >= SavedSearch.A_TOPIC_MAX and not await own.filter(name=name).aexists():
        return gettext("%(count)s searches of this topic are saved. Delete one first.") % {
            "count": SavedSearch.A_TOPIC_MAX
        }
    await SavedSearch.objects.aupdate_or_create(user=user, topic=topic, name=name, defaults={"query": query})
    return None


@requires(Permission.MESSAGES_READ, ACT)
async def forget(request: HttpRequest, name: str) -> HttpResponse:
    """Delete the account's search of that name."""
    note_nothing(request)
    await SavedSearch.objects.filter(user=_user(request), topic=name, name=request.POST.get("name", "")).adelete()
    return redirect("topic", name)
