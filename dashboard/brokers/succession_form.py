"""Which slave becomes the master: the form of the preview."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.forms.base import BaseForm
from gantrymq.client.admin.failover import WHY_CHARS_MAX

BYTES_MAX = (1 << 63) - 1
MINUTES_MAX = 7 * 24 * 60


class SettlementForm(BaseForm):
    """keep: the address of the master whose log counts; accept_unknown: although members do not answer."""

    keep = forms.ChoiceField(label=_("Log that counts"))
    accept_unknown = forms.BooleanField(
        label=_("Accept unknown losses"),
        required=False,
        help_text=_("Chooses although members do not answer, which may have more than the chosen log."),
    )

    def __init__(self, *args: Any, masters: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["keep"].choices = [(address, address) for address in masters]  # type: ignore[attr-defined]


class SuccessionForm(BaseForm):
    """to: a slave's address, "" for the best; accept_loss: bytes of the old master's log that may be missing.
    accept_unknown: go on although no member can say that nothing acknowledged is lost.
    """

    to = forms.ChoiceField(label=_("Becomes the master"), required=False)
    accept_loss = forms.IntegerField(
        label=_("Bytes that may be missing"),
        required=False,
        min_value=0,
        max_value=BYTES_MAX,
        help_text=_("Of the old master's log, once it is lost for good. Messages in these bytes are lost."),
    )

    accept_unknown = forms.BooleanField(
        label=_("Accept unknown losses"),
        required=False,
        help_text=_(
            "Promotes although messages that producers regard as stored may be lost: members that "
            "could have them do not answer."
        ),
    )

    def __init__(self, *args: Any, slaves: list[str], has_master: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", gettext("Longest log")), *((address, address) for address in slaves)]
        self.fields["to"].choices = choices  # type: ignore[attr-defined]
        if has_master:
            del self.fields["accept_loss"], self.fields["accept_unknown"]  # a switchover loses nothing

    @property
    def address(self) -> str | None:
        return self.cleaned_data["to"] or None

    @property
    def accepted_loss(self) -> int:
        return self.cleaned_data.get("accept_loss") or 0

    @property
    def accepts_unknown(self) -> bool:
        return bool(self.cleaned_data.get("accept_unknown"))


class PauseForm(BaseForm):
    """why: for those who find it paused; minutes: how long it is planned for, which does not end it."""

    why = forms.CharField(label=_("Reason"), max_length=WHY_CHARS_MAX)
    minutes = forms.IntegerField(
        label=_("Planned minutes"),
        required=False,
        min_value=1,
        max_value=MINUTES_MAX,
        help_text=_("For those who find it paused: it does not end the pause."),
    )

    def until_ms(self, now: float) -> int:
        """The planned end, 0 without one."""
        minutes = self.cleaned_data["minutes"]
        return int((now + minutes * 60) * 1000) if minutes else 0


class ResumeForm(BaseForm):
    """force: also while the master does not renew in etcd, so that it is replaced."""

    force = forms.BooleanField(
        label=_("Also if the master does not answer"),
        required=False,
        help_text=_("A master that does not renew in etcd is replaced as soon as the pause ends."),
    )
