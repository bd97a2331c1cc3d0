"""An entry of the name servers' key-value table, as a person or a program gives it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.forms.base import BaseForm, TypedNameForm

NAME_CHARS_MAX = 255
VALUE_CHARS_MAX = 4096


def _one_line(text: str) -> None:
    if not text.isprintable():
        raise forms.ValidationError(_("One line of text, without control characters."))


def _field(label: Any, max_length: int, help_text: Any = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"spellcheck": "false"})
    return forms.CharField(
        label=label, max_length=max_length, help_text=help_text, widget=widget, validators=[_one_line]
    )


class NamespaceForm(BaseForm):
    """Which namespace."""

    namespace = _field(_("Namespace"), NAME_CHARS_MAX)


class PlaceForm(NamespaceForm):
    """Which entry."""

    key = _field(_("Key"), NAME_CHARS_MAX)


class EntryForm(PlaceForm):
    """An entry with its value."""

    value = _field(_("Value"), VALUE_CHARS_MAX, _("For an ordered topic its queues by broker: broker-a:4;broker-b:4"))


class TypedKeyForm(TypedNameForm):
    """The safety catch: the entry's key, typed."""

    typed_name = forms.CharField(label=_("Key"), strip=True, widget=forms.TextInput(attrs={"spellcheck": "false"}))


class NewValueForm(TypedKeyForm):
    """Another value for an entry that is there, after its key was typed."""

    field_order = ("value", "typed_name")
    value = _field(_("Value"), VALUE_CHARS_MAX)
