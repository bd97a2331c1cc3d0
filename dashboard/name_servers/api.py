"""/api/v1/cluster/kv: the name servers' key-value table."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Field, Query, Schema

from dashboard.access.permissions import Permission
from dashboard.forms.base import BaseForm
from dashboard.name_servers.entries import ORDER_TOPICS, entries_of, put, remove
from dashboard.name_servers.form import NAME_CHARS_MAX, VALUE_CHARS_MAX, EntryForm, NamespaceForm, PlaceForm
from dashboard.rest.auth import Token
from dashboard.rest.lists import Listed
from dashboard.rest.refusals import FormProblem
from dashboard.rest.routes import Routes
from dashboard.rest.values import Given

router = Routes(asks_cluster=True)

READ_ENTRIES = Token(Permission.CONFIG_READ)
WRITE_ENTRIES = Token(Permission.CONFIG_WRITE)


class EntryOut(Schema):
    """A key and its value."""

    key: str
    value: str


class EntryList(Listed[EntryOut]):
    """The entries of a namespace, by key; none when there is no such namespace."""


class EntryIn(Given):
    """An entry with its value. Another value replaces the one that is there."""

    namespace: str = Field(max_length=NAME_CHARS_MAX, examples=["ORDER_TOPIC_CONFIG"])
    key: str = Field(max_length=NAME_CHARS_MAX, examples=["orders"])
    value: str = Field(max_length=VALUE_CHARS_MAX, examples=["broker-a:4;broker-b:4"])


class EntryChanged(Schema):
    """What an entry was and is. null: there was none, or is none any more."""

    namespace: str
    key: str
    before: str | None
    after: str | None


@router.get("/kv", auth=READ_ENTRIES, summary="The name servers' key-value entries of a namespace")
async def list_kv_entries(request: HttpRequest, namespace: str = ORDER_TOPICS) -> EntryList:
    _checked(NamespaceForm({"namespace": namespace}))
    rows = await entries_of(namespace)
    return EntryList.whole(EntryOut(key=key, value=value) for key, value in rows)


@router.put("/kv", auth=WRITE_ENTRIES, summary="Set an entry at every name server")
async def set_kv_entry(request: HttpRequest, body: EntryIn) -> EntryChanged:
    _checked(EntryForm(body.dict()))
    before = await put(request, body.namespace, body.key, body.value)
    return EntryChanged(namespace=body.namespace, key=body.key, before=before, after=body.value)


@router.delete("/kv", auth=WRITE_ENTRIES, response=404, summary="Remove an entry from every name server")
async def remove_kv_entry(
    request: HttpRequest, namespace: str = Query(..., max_length=255), key: str = Query(..., max_length=255)
) -> EntryChanged:
    _checked(PlaceForm({"namespace": namespace, "key": key}))
    return EntryChanged(namespace=namespace, key=key, before=await remove(request, namespace, key), after=None)


def _checked(form: BaseForm) -> None:
    if not form.is_valid():
        raise FormProblem(form.problems())
    changed = {name: ["No spaces at the ends."] for name, text in form.cleaned_data.items() if text != form.data[name]}
    if changed:
        raise FormProblem(changed)
