"""A change as tests of the chain append it."""

from __future__ import annotations

from dashboard.audit.chain import Change
from dashboard.models.audit import Way


def change(action: str = "topic deleted", **others: object) -> Change:
    return Change(who="alice", way=Way.PAGE, address="127.0.0.1", action=action, target="orders", **others)  # type: ignore[arg-type]
