"""Definitions: the export, and an import in two steps, of which the second does what the first showed.

What is imported is a text: no address of the dashboard reads a file of a form, and a file that is chosen is put into
the text by the browser. The accounts with which clients sign at
the brokers have a form: it makes a document, whose preview says who loses what.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, get_args

from django import forms
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.definitions.api import facts_of
from dashboard.definitions.document import DocumentRefused, as_text
from dashboard.definitions.importing import exported, imported, items_in, planned
from dashboard.definitions.plan import Plan
from dashboard.definitions.reading import found
from dashboard.definitions.schemas import (
    ACCESS_KEY_CHARS_MAX,
    TEXT_BYTES_MAX,
    WORD,
    AccountPerm,
    Definitions,
    address_wanted,
    checked_address,
)
from dashboard.forms.base import BaseForm, TypedNameForm
from dashboard.http.client_address import client_address
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Way
from dashboard.topics.changes import Asker

FILE = "definitions.yaml"
_PERMS = get_args(AccountPerm)
_SELECT = [(perm, perm) for perm in _PERMS]


async def export(request: HttpRequest) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{FILE}"'}
    return HttpResponse(await exported(gateway()), content_type="application/yaml; charset=utf-8", headers=headers)


async def definitions(request: HttpRequest) -> HttpResponse:
    """The form; a document posted without the digest of its preview is only looked at."""
    note_nothing(request)
    form = ImportForm(request.POST) if request.method == "POST" else ImportForm()
    if form.is_valid():
        return await preview(request, form.cleaned_data["text"], delete=form.cleaned_data["delete"])
    context = {"form": form, "lines": _lines(request, delete=False)}
    return render(request, "definitions/definitions.html", context, status=422 if form.is_bound else 200)


async def preview(request: HttpRequest, text: str, *, delete: bool) -> HttpResponse:
    """What the document changes; with the digest of such a preview the change is made."""
    try:
        return await _looked_at(request, text, delete=delete)
    except (DocumentRefused, GatewayError) as exc:
        form = ImportForm({"text": text, "delete": delete})
        form.add_error(None, exc.problems if isinstance(exc, DocumentRefused) else str(exc))
        context = {"form": form, "lines": _lines(request, delete=delete)}
        return render(request, "definitions/definitions.html", context, status=422)


async def _looked_at(request: HttpRequest, text: str, *, delete: bool, account: str = "") -> HttpResponse:
    """account: the one it is about, when its form made the document. Raises DocumentRefused, GatewayError."""
    form = ImportForm({"text": text, "delete": delete})
    context: dict[str, Any] = {"form": form, "text": text, "delete": delete, "lines": _lines(request, delete=delete)}
    context["account"] = account
    plan = await planned(gateway(), text, delete=delete)
    typed = _typed(request, plan)
    if "digest" in request.POST and (typed is None or typed.is_valid()):
        return await _import(request, context, text, delete=delete)
    refusals = [one.refusal for one in plan.now if one.refusal]
    if account and refusals:  # its form says so: there is nothing to save
        raise DocumentRefused(refusals[0])
    context |= {"plan": plan, "typed": typed, "failing": len(refusals)}
    is_refused = typed is not None and typed.is_bound
    return render(request, "definitions/definitions.html", context, status=422 if is_refused else 200)


async def _import(request: HttpRequest, context: dict[str, Any], text: str, *, delete: bool) -> HttpResponse:
    asker = Asker(str(request.user), Way.PAGE, client_address(request), request_id())
    done = await imported(gateway(), text, asker, delete=delete, digest=request.POST["digest"])
    note(request, "definitions imported", "", facts_of(done))
    context |= {"done": done, "failed": sum(not one.is_done for one in done.dealt), "form": ImportForm()}
    return render(request, "definitions/definitions.html", context)


def _typed(request: HttpRequest, plan: Plan) -> TypedNameForm | None:
    """The safety catch of an import that deletes: how much, typed."""
    if not plan.deleted:
        return None
    given = request.POST if "digest" in request.POST else None
    typed = TypedNameForm(given, name=str(plan.deleted), undone="changed")
    typed.fields["typed_name"].label = gettext("How many are deleted")
    return typed


def _lines(request: HttpRequest, *, delete: bool) -> list[str]:
    there = ["--dashboard", f"{request.scheme}://{request.get_host()}"]
    words = (["export"], ["diff", FILE], ["apply", FILE, *(["--delete"] if delete else [])])
    lines = [shlex.join(["gantry", "admin", "definitions", *line, *there]) for line in words]
    return [f"{lines[0]} > {FILE}", *lines[1:]]


async def accounts(request: HttpRequest) -> HttpResponse:
    """All accounts, and a form for a new one, or for that of `?key=`."""
    note_nothing(request)
    there = await found(gateway(), ("accounts",))
    items = there.items.get("accounts", {})
    key = request.GET.get("key", "")
    if request.method == "POST":
        key = request.POST.get("access_key", "")
        form = AccountForm(request.POST, item=items.get(key))
        try:
            if "digest" in request.POST:
                form = AccountForm.filled(key, items.get(key, {}), items.get(key))
                text = request.POST.get("text", "")
                form = AccountForm.filled(key, await _only_account(text, key), items.get(key))
                return await _looked_at(request, text, delete=False, account=key)
            if form.is_valid():
                return await _looked_at(request, as_text(form.document()), delete=False, account=key)
        except (DocumentRefused, GatewayError) as exc:
            form.add_error(None, str(exc))
    else:
        form = AccountForm(initial={"access_key": key, **items.get(key, {})}, item=items.get(key))
    rows = [(key, item, key in there.partial) for key, item in sorted(items.items())]
    context = {"rows": rows, "why_not": there.why_not.get("accounts"), "form": form, "key": key if key in items else ""}
    return render(request, "definitions/accounts.html", context, status=422 if form.is_bound else 200)


async def _only_account(text: str, key: str) -> dict[str, Any]:
    """The account of a document that its own form made, and of no other. Raises DocumentRefused."""
    sections = await items_in(text)
    if sections.keys() != {"accounts"} or sections["accounts"].keys() != {key}:
        raise DocumentRefused(gettext("This is not a preview of %(name)s. Nothing was changed.") % {"name": key or "?"})
    return sections["accounts"][key]


class ImportForm(BaseForm):
    """The document, and whether it deletes."""

    text = forms.CharField(
        label=_("Document"), strip=False, max_length=TEXT_BYTES_MAX,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        help_text=_(
            "YAML or JSON, as the export writes it, or a table of topics: the first line names the fields, as in "
            "name,write_queues,read_queues. What it does not say stays as it is."
        ),
    )  # fmt: skip
    delete = forms.BooleanField(
        label=_("Delete what it does not name"), required=False,
        help_text=_("Only in the sections that it has. Without this nothing is deleted."),
    )  # fmt: skip


class PermsField(forms.CharField):
    """Permissions by name, a line each: `orders=PUB|SUB`, as RocketMQ's plain_acl.yml has them."""

    widget = forms.Textarea

    def __init__(self, label: Any) -> None:
        told = _("One a line, such as orders=PUB|SUB. Permissions: DENY, PUB, SUB or PUB|SUB.")
        super().__init__(label=label, required=False, max_length=TEXT_BYTES_MAX, help_text=told)
        self.widget.attrs |= {"rows": 4, "spellcheck": "false"}

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name}={perm}" for name, perm in value.items()) if isinstance(value, dict) else value

    def clean(self, value: Any) -> dict[str, str]:  # type: ignore[override]
        found: dict[str, str] = {}
        is_word = RegexValidator(WORD, _("Write each line as name=PERMISSION."))
        for line in filter(None, map(str.strip, super().clean(value).splitlines())):
            name, _equals, perm = (part.strip() for part in line.partition("="))
            is_word(name)
            if perm not in _PERMS:
                told = _("%(line)s: the permission is one of %(perms)s.")
                raise forms.ValidationError(told, params={"line": line, "perms": ", ".join(_PERMS)})
            if name in found:
                raise forms.ValidationError(_("%(name)s is there twice."), params={"name": name})
            found[name] = perm
        return found


class AccountForm(BaseForm):
    """One account, all of its fields: what is taken out is taken away."""

    access_key = forms.RegexField(
        WORD, label=_("Access key"), max_length=ACCESS_KEY_CHARS_MAX,
        error_messages={"invalid": _("An access key has no spaces, commas or equals signs.")},
    )  # fmt: skip
    admin = forms.BooleanField(
        label=_("Administrator"), required=False, help_text=_("May do everything, whatever is said below.")
    )
    topic_perms = PermsField(_("Topics"))
    default_topic_perm = forms.ChoiceField(label=_("All other topics"), choices=_SELECT)
    group_perms = PermsField(_("Groups"))
    default_group_perm = forms.ChoiceField(label=_("All other groups"), choices=_SELECT)
    white_remote_address = forms.CharField(
        label=_("Without a signature from"), required=False,
        help_text=_("Addresses that need no signature, such as 10.0.0.*: leave it empty unless clients can't sign."),
    )  # fmt: skip

    def __init__(self, *args: Any, item: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """item: the account that there is; what brokers have differently is not in it, and stays as it is."""
        super().__init__(*args, **kwargs)
        self.differing: list[str] = []
        if item is not None:
            self.fields["access_key"].widget.attrs["readonly"] = True
            self.differing = [name for name in self.fields if name not in item and name != "access_key"]
        for name in self.differing:
            del self.fields[name]

    def clean_white_remote_address(self) -> str:
        try:
            return checked_address(self.cleaned_data["white_remote_address"])
        except ValueError:
            raise forms.ValidationError(address_wanted()) from None

    @classmethod
    def filled(cls, key: str, values: Mapping[str, Any], item: Mapping[str, Any] | None) -> AccountForm:
        """The form as if these values had been typed."""
        fields = cls(item=item).fields
        typed = {name: fields[name].prepare_value(value) for name, value in values.items() if name in fields}
        return cls(typed | {"access_key": key}, item=item)

    def document(self) -> Definitions:
        return Definitions.model_validate({"accounts": [self.cleaned_data]})
