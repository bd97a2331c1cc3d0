"""What every form has: fields that tie an error to themselves, sentences for REST; and the form before a loss."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _


class BaseForm(forms.Form):
    """A form whose fields carry what accessibility needs: an error is tied to its field."""

    template_name = "_form.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def problems(self) -> dict[str, list[str]]:
        """Field to sentences; what REST answers with 422."""
        return {name: [str(text) for text in texts] for name, texts in self.errors.items()}


_NOTHING_DONE = {
    "deleted": _("That is not the name. Nothing was deleted."),
    "changed": _("That is not the name. Nothing was changed."),
}


class TypedNameForm(BaseForm):
    """The safety catch before something is lost: its name, typed."""

    typed_name = forms.CharField(label=_("Name"), strip=True, widget=forms.TextInput(attrs={"spellcheck": "false"}))

    def __init__(self, *args: Any, name: str, undone: str = "deleted", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = name
        self.undone = undone

    def clean_typed_name(self) -> str:
        if self.cleaned_data["typed_name"] != self.name:
            raise forms.ValidationError(_NOTHING_DONE[self.undone])
        return self.name
