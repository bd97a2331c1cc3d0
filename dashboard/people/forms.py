"""Logging in, the first administrator, API tokens."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.password_validation import validate_password
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.access.tokens import TOKEN_LIFE_DAYS
from dashboard.forms.base import BaseForm
from dashboard.limits.names import BadPrefix, read_prefixes
from dashboard.models.management import ApiToken, Role, User
from dashboard.people.new_names import check_new_name


class LoginForm(BaseForm):
    """Name and password."""

    username = forms.CharField(label=_("Name"), max_length=64, widget=forms.TextInput(
        attrs={"autocomplete": "username", "autofocus": True, "autocapitalize": "none"}))  # fmt: skip
    password = forms.CharField(label=_("Password"), max_length=1024, strip=False, widget=forms.PasswordInput(
        attrs={"autocomplete": "current-password"}))  # fmt: skip


class NewAccountForm(BaseForm):
    """An account of one's own: a name, and a password twice."""

    username = forms.CharField(label=_("Your name"), max_length=64, widget=forms.TextInput(
        attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}))  # fmt: skip
    password = forms.CharField(
        label=_("Password"), max_length=1024, strip=False,
        help_text=_("At least ten characters, not a common password."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "autofocus": True}),
    )  # fmt: skip
    again = forms.CharField(label=_("Password again"), max_length=1024, strip=False, widget=forms.PasswordInput(
        attrs={"autocomplete": "new-password"}))  # fmt: skip

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        check_new_name(username)
        return username

    def clean(self) -> dict[str, Any]:
        super().clean()
        name = self.cleaned_data.get("username")
        _check_password(self, User(username=name) if name else None)
        return self.cleaned_data


class FirstRunForm(NewAccountForm):
    """The first administrator."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].initial = "admin"


class PrefixesField(forms.CharField):
    """Beginnings of names; cleaned to a tuple, () for all."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Only names that begin with"), required=False, max_length=6500,
            widget=forms.TextInput(attrs={"placeholder": _("all topics and groups"), "spellcheck": "false"}),
        )  # fmt: skip

    def clean(self, value: Any) -> tuple[str, ...]:
        try:
            return read_prefixes(super().clean(value))
        except BadPrefix as exc:
            raise forms.ValidationError(str(exc)) from exc


class InvitationForm(BaseForm):
    """Whom to invite, and as what."""

    label = forms.CharField(label=_("Invited"), max_length=64, widget=forms.TextInput(
        attrs={"placeholder": _("Ada, orders team")}))  # fmt: skip
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.READER)
    prefixes = PrefixesField()


class PasswordForm(BaseForm):
    """One's own password: the one of now, and another one twice."""

    current = forms.CharField(label=_("Current password"), max_length=1024, strip=False, widget=forms.PasswordInput(
        attrs={"autocomplete": "current-password", "autofocus": True}))  # fmt: skip
    password = forms.CharField(
        label=_("New password"), max_length=1024, strip=False,
        help_text=_("At least ten characters, not a common password."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )  # fmt: skip
    again = forms.CharField(label=_("New password again"), max_length=1024, strip=False, widget=forms.PasswordInput(
        attrs={"autocomplete": "new-password"}))  # fmt: skip

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user

    def clean(self) -> dict[str, Any]:
        super().clean()
        _check_password(self, self._user)
        return self.cleaned_data


def _check_password(form: forms.Form, user: User | None) -> None:
    """The new one, typed twice. user: whose it will be, None: not known, so that the password can't be checked."""
    password = form.cleaned_data.get("password")
    if not password:
        return
    if user is not None:
        try:
            validate_password(password, user)
        except forms.ValidationError as exc:
            form.add_error("password", exc)
    if form.cleaned_data.get("again") not in (None, password):
        form.add_error("again", gettext("The two passwords differ."))


class TokenForm(BaseForm):
    """A new API token."""

    name = forms.CharField(label=_("Purpose"), max_length=64, widget=forms.TextInput(attrs={"placeholder": "CI"}))
    scope = forms.ChoiceField(label=_("Permissions"), choices=ApiToken.Scope.choices, initial=ApiToken.Scope.READ)
    life_days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
        initial=90,
        choices=lambda: [(days, gettext("%(days)s days") % {"days": days}) for days in TOKEN_LIFE_DAYS],
    )
