"""Registers with a rule left out: tests show that they are found."""

from __future__ import annotations

from appliance.register.register import Register


class Forgetful(Register):
    """Does not remember what it sent."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, -1 if name == "_unsettled_at" else value)


class AnyGroup(Register):
    """Does not look whose record it is."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, "" if name == "group" else value)
