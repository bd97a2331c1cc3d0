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
from dashboard.cluster.errors import NotAllowed
from dashboard.messages.forms import MessageSearchForm, SaveSearchForm
from dashboard.models.management import User
from dashboard.models.saved_searches import SavedSearch

ASKED = ("q", "since", "until", "queue")


def asked_query(given: Mapping[str, str]) -> str:
    """What is asked for, as in the page's address."""
    said = {key: given.get(key, "").strip() for key in ASKED}
    return urlencode({key: text for key, text in said.items() if text})


async def saved_searches(user: User, topic: str) -> list[SavedSearch]:
    """The account's, by name."""
    return [row async for row in SavedSearch.objects.filter(user=user, topic=topic).order_by("name")]


@requires(Permission.SEARCHES_WRITE, ACT)
async def save(request: HttpRequest, name: str) -> HttpResponse:
    note_nothing(request)
    asked, form = MessageSearchForm(request.POST.dict()), SaveSearchForm(request.POST)
    address = f"{reverse('topic', args=[name])}?{asked_query(request.POST)}"
    if not asked.is_valid():
        return redirect(address)  # the page says what is wrong
    if form.is_valid():
        try:
            await keep_search(_user(request), name, form.cleaned_data["name"], request.POST)
        except NotAllowed as exc:
            notes.error(request, str(exc))
    else:
        [[trouble]] = form.problems().values()
        notes.error(request, trouble)
    return redirect(address)


def _user(request: HttpRequest) -> User:
    user: User = request.principal.user  # type: ignore[attr-defined]
    return user


async def keep_search(user: User, topic: str, name: str, asked: Mapping[str, str]) -> SavedSearch:
    """Keep what is asked for under a name; one of that name is replaced. Raises NotAllowed."""
    query = asked_query(asked)
    if len(query) > SavedSearch.QUERY_MAX:
        raise NotAllowed(gettext("The search is too long to be saved."))
    own = SavedSearch.objects.filter(user=user, topic=topic)
    if await own.acount() >= SavedSearch.A_TOPIC_MAX and not await own.filter(name=name).aexists():
        raise NotAllowed(
            gettext("%(count)s searches of this topic are saved. Delete one first.")
            % {"count": SavedSearch.A_TOPIC_MAX}
        )
    kept, _ = await SavedSearch.objects.aupdate_or_create(user=user, topic=topic, name=name, defaults={"query": query})
    return kept


@requires(Permission.SEARCHES_WRITE, ACT)
async def forget(request: HttpRequest, name: str) -> HttpResponse:
    """Delete the account's search of that name."""
    note_nothing(request)
    await SavedSearch.objects.filter(user=_user(request), topic=name, name=request.POST.get("name", "")).adelete()
    return redirect("topic", name)
