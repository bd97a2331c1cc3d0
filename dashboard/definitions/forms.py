"""A document to import, as text: no address of the dashboard reads a file of a form."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.definitions.schemas import TEXT_BYTES_MAX
from dashboard.forms.base import BaseForm


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
