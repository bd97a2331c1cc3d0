"""The Overview as REST gives it. A null is something not known; a zero is zero."""

from __future__ import annotations

from datetime import UTC, datetime

from ninja import Schema

from dashboard.brokers.schemas import BrokerOut
from dashboard.rest.values import Out
from dashboard.status.board import Snapshot
from dashboard.status.verdict import Verdict


class ProcessOut(Out):
    """A process of the appliance."""

    name: str
    role: str
    state: str
    pid: int | None
    restarts: int | None
    cpu_ratio: float | None
    rss_bytes: int | None


class ClusterOut(Schema):
    """The Overview. level: of the worst problem, which need not be the sentence's. Rates: mean of about the last
    minute. stored_messages_without: brokers that the sum lacks.
    """

    at: datetime
    level: str
    sentence: str
    problems: list[str]
    name_servers: str
    in_rate: float | None
    out_rate: float | None
    stored_messages: int | None
    stored_messages_without: list[str]
    brokers: list[BrokerOut]
    processes: list[ProcessOut]

    @classmethod
    def of(cls, snapshot: Snapshot, verdict: Verdict) -> ClusterOut:
        return cls(
            at=datetime.fromtimestamp(snapshot.at, UTC),
            level=verdict.worst.word,
            sentence=verdict.sentence,
            problems=[f"{problem.title}: {problem.evidence}" for problem in verdict.problems],
            name_servers=snapshot.namesrv,
            in_rate=snapshot.known_sum("in_rate")[0],
            out_rate=snapshot.known_sum("out_rate")[0],
            stored_messages=snapshot.stored.messages if snapshot.stored else None,
            stored_messages_without=list(snapshot.stored.missing) if snapshot.stored else [],
            brokers=[BrokerOut.of_state(state) for state in snapshot.brokers],
            processes=[ProcessOut.of(process) for process in snapshot.processes],
        )
