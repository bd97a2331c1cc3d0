"""Which problems are one incident. Pure: told the problems of each second, it says which rows to write.

What comes and goes within SHORTEST_S is no incident: a start alone would make some. What is gone for less than QUIET_S
and comes back is the same one still.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.status.check import Check, Level

SHORTEST_S = 3.0
QUIET_S = 10.0
ADOPTED_S = 60.0  # after a start all that is watched is looked at again within this time
SEEN_EACH_S = 60.0  # how often a row says that its incident goes on, for a process that is killed
OPEN_MAX = 200  # at the same time; what is worst comes first


@dataclass(slots=True)
class Incident:
    """One problem from its first second to its last. level, title, worst: of its worst moment."""

    identity: str
    level: Level
    title: str
    evidence: str  # when it began
    worst: str  # the last one at the highest level
    begun_at: float
    seen_at: float
    ended_at: float | None = None
    row: int | None = None  # its primary key once it is written
    written_at: float | None = None
    stays_until: float = 0.0

    def take(self, problem: Check, now: float) -> None:
        """It is still there. What is worse than before is written at once, what is only seen again now and then."""
        if problem.level > self.level:
            self.written_at = None
        if problem.level >= self.level:
            self.level, self.title, self.worst = problem.level, problem.title, problem.evidence
        self.seen_at = now

    def is_due(self, now: float) -> bool:
        """Whether its row has to be written."""
        if self.ended_at is not None:
            return True
        if self.seen_at - self.begun_at < SHORTEST_S:
            return False
        return self.written_at is None or now - self.written_at >= SEEN_EACH_S


class IncidentBook:
    """The incidents that are open, and the ended ones that are not written yet."""

    def __init__(self) -> None:
        self._open: dict[str, Incident] = {}
        self._ended: list[Incident] = []

    def note(self, problems: Iterable[Check], now: float) -> None:
        """What the board shows at `now`."""
        for problem in sorted(problems, key=lambda one: -one.level):
            known = self._open.get(problem.identity)
            if known is not None:
                known.take(problem, now)
            elif problem.level > Level.GOOD and len(self._open) < OPEN_MAX:
                self._open[problem.identity] = Incident(
                    problem.identity, problem.level, problem.title, problem.evidence, problem.evidence, now, now
                )
        for incident in [one for one in self._open.values() if now - max(one.seen_at, one.stays_until) >= QUIET_S]:
            del self._open[incident.identity]
            incident.ended_at = incident.seen_at
            if incident.row is not None or incident.seen_at - incident.begun_at >= SHORTEST_S:
                self._ended = [*self._ended[-OPEN_MAX:], incident]

    def adopt(self, incidents: Iterable[Incident], now: float) -> None:
        """Go on with what was open when the last process ended."""
        for incident in incidents:
            known = self._open.get(incident.identity)
            if known is not None:
                known.row, known.begun_at, known.evidence = incident.row, incident.begun_at, incident.evidence
            else:
                incident.stays_until = now + ADOPTED_S
                self._open[incident.identity] = incident

    def due(self, now: float) -> list[Incident]:
        """The incidents whose rows have to be written."""
        return [incident for incident in (*self._open.values(), *self._ended) if incident.is_due(now)]

    def written(self, incident: Incident, row: int, now: float) -> None:
        """Its row is written."""
        incident.row, incident.written_at = row, now
        if incident in self._ended:
            self._ended.remove(incident)
