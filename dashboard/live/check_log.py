"""Problems in the log: when one begins and when it is gone, so that a later reader finds what the page showed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from dashboard.status.check import Check, Level

logger = logging.getLogger(__name__)

LEVELS = {Level.GOOD: logging.INFO, Level.WARN: logging.WARNING, Level.BAD: logging.ERROR}


def _words(problem: Check) -> str:
    """The title without what it counts."""
    return re.sub(r"\d+", "", problem.title)


class CheckLog:
    """Told the problems of each snapshot; logs what is new, what got worse, and what is gone."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Check, float]] = {}  # what, and since when

    def note(self, problems: Iterable[Check], now: float) -> None:
        seen: dict[str, tuple[Check, float]] = {}
        for problem in problems:
            before = self._open.get(problem.identity)
            seen[problem.identity] = (problem, before[1] if before is not None else now)
            if before is None or problem.level > before[0].level or _words(problem) != _words(before[0]):
                logger.log(
                    LEVELS[problem.level],
                    "problem",
                    extra={"event": "problem", "what": problem.title, "evidence": problem.evidence},
                )
        for identity, (problem, since) in self._open.items():
            if identity not in seen:
                facts = {"event": "problem_gone", "what": problem.title, "lasted_s": round(now - since, 1)}
                logger.info("problem resolved", extra=facts)
        self._open = seen
