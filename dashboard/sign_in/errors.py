"""Why a sign-in with the provider did not work. Logs tell it in English, the log-in page in the person's language."""

from __future__ import annotations

from django.utils.translation import gettext

from gantrymq.errors import GantryError


class SignInProblem(GantryError):
    """It did not work. text: marked with gettext_noop; facts: its %(name)s. status: of the page that tells it."""

    status = 422

    def __init__(self, text: str, /, **facts: object) -> None:
        super().__init__(text % facts)
        self._text = text
        self._facts = facts

    def shown(self) -> str:
        """For the page, in the language of the request."""
        return gettext(self._text) % self._facts


class BadAnswer(SignInProblem):
    """What came back is not what this browser asked for, or not from the provider."""


class ProviderDown(SignInProblem):
    """The provider does not answer, or not as one."""

    status = 503


class Refused(SignInProblem):
    """The provider says who it is, and this person may not come in. name, subject: who, for the audit log."""

    status = 403

    def __init__(self, text: str, /, *, name: str = "", subject: str = "", **facts: object) -> None:
        super().__init__(text, **facts)
        self.name = name
        self.subject = subject
