"""What waits for people, by the page where they deal with it: the counts of the menu and of the tab's title. Pure."""

from __future__ import annotations

from dashboard.limits.names import NO_LIMIT, NameLimit
from dashboard.status.board import Board
from dashboard.status.verdict import checked

PAGES = ("alerts", "dead-letters")


def waiting(board: Board, names: NameLimit = NO_LIMIT) -> dict[str, int]:
    """Open alerts of checks and rules that are not acknowledged, and dead letters of the groups that an account may
    see; empty before the first look.
    """
    snapshot = board.snapshot
    if snapshot is None:
        return {}
    letters = snapshot.stored.dead_letters if snapshot.stored is not None else ()
    dead = sum(count for group, count in letters if names.allows(group))
    handled = sum(rule is not None for rule, _subject in board.acknowledged)
    handled_checks = board.of_rules_too | {subject for rule, subject in board.acknowledged if rule is None}
    of_checks = sum(problem.identity not in handled_checks for problem in checked(snapshot))
    return {"alerts": of_checks + max(0, snapshot.open_of_rules - handled), "dead-letters": dead}
