"""Forms of documents: a text to import (no address of the dashboard reads a file of a form), and one account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from django import forms
from django.core.validators import RegexValidator
from django.utils.translation import gettext_lazy as _

from dashboard.definitions.schemas import (
    ACCESS_KEY_CHARS_MAX,
    ADDRESS,
    TEXT_BYTES_MAX,
    WORD,
    AccountPerm,
    Definitions,
)
from dashboard.forms.base import BaseForm

_PERMS = get_args(AccountPerm)
_SELECT = [(perm, perm) for perm in _PERMS]


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

    access_key = forms.RegexField(WORD, label=_("Access key"), max_length=ACCESS_KEY_CHARS_MAX)
    admin = forms.BooleanField(
        label=_("Administrator"), required=False, help_text=_("May do everything, whatever is said below.")
    )
    topic_perms = PermsField(_("Topics"))
    default_topic_perm = forms.ChoiceField(label=_("All other topics"), choices=_SELECT)
    group_perms = PermsField(_("Groups"))
    default_group_perm = forms.ChoiceField(label=_("All other groups"), choices=_SELECT)
    white_remote_address = forms.RegexField(
        ADDRESS, label=_("Without a signature from"), required=False,
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

    def document(self) -> Definitions:
        return Definitions.model_validate({"accounts": [self.cleaned_data]})
