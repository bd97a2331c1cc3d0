"""What each topic takes in the logs, and who sends to it, shared by all tabs: a page asks no broker for it.

The watch (`dashboard/live/book_watch.py`) asks each master for the next few hundred topics, in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef
from dashboard.language.sentences import gettext, joined
from dashboard.limits.names import current
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.figures import TopicFigures, TopicFiguresPage
from gantrymq.errors import ResponseError
from gantrymq.remoting.codes import ResponseCode

ANSWERED_S = 8.0  # who has not answered for longer is silent: what it told is as old as it is
ASKED_AGAIN_S = 60.0  # a broker that has no such request: it may be another one after its next start


@dataclass(frozen=True, slots=True)
class Sender:
    """A connected client that sent one of a topic's newest messages. last_stored_at: epoch seconds.

    name: its client id, or its address where it says none.
    """

    name: str
    language: str
    groups: tuple[str, ...]
    addresses: tuple[str, ...]
    brokers: tuple[str, ...]
    last_stored_at: float


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic at all its brokers. size_bytes: None where one of them has not told it, and `why`.

    is_exact: every message is counted; else the rest is taken to be like those that are. at: of the oldest look.
    """

    size_bytes: int | None
    is_exact: bool
    senders: tuple[Sender, ...]
    at: float
    why: str | None = None
    is_silent: bool = False  # a broker of it does not answer now


class TopicBook:
    """One per process. Written by the watch, read by pages, REST and the sampler."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._told: dict[str, dict[str, tuple[float, TopicFigures]]] = {}  # topic → broker → when, what
        self._after: dict[str, str] = {}  # broker → the name to ask for next
        self._round: dict[str, set[str]] = {}  # broker → topics it told since its first
        self._silent_until: dict[str, float] = {}  # brokers that have no such request
        self._answered_at: dict[str, float] = {}
        self._looked_at = 0.0
        self._sizes: Mapping[str, int] = {}

    async def look(self, gateway: Gateway) -> bool:
        """Ask every master for its next topics; whether one has more of them for the next look.

        Raises GatewayError when nothing is known of the cluster.
        """
        cluster, now = await gateway.brokers.list(), gateway.calls.clock()
        self._forget_brokers({broker.name for broker in cluster.brokers})
        due = [broker for broker in cluster.brokers if self._silent_until.get(broker.name, 0.0) <= now]
        answers, _ = await gateway.calls.ask_brokers(due, self._ask)
        now = self._looked_at = gateway.calls.clock()
        for broker, page in answers:
            self._answered_at[broker.name] = now
            if page is None:
                self._silent_until[broker.name] = now + ASKED_AGAIN_S
            else:
                self._take(broker.name, page, now)
        sizes = {topic: [one.size_bytes for _, one in told.values()] for topic, told in self._told.items()}
        self._sizes = {topic: sum(filter(None, known)) for topic, known in sizes.items() if None not in known}
        return any(self._after.values())

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes by topic, as far as they are known; not changed any more once handed out."""
        return self._sizes

    def facts(self, topic: str, brokers: Iterable[str]) -> TopicFacts:
        """What is known of a topic that these brokers hold."""
        if not current().allows(topic):
            return TopicFacts(None, False, (), 0.0, gettext("not within your names"))
        return self._facts(topic, brokers)

    # ---- helpers

    async def _ask(self, admin: AdminClient, broker: BrokerRef) -> TopicFiguresPage | None:
        """None: the broker has no such request."""
        try:
            return await admin.topics.figures_page_at(broker.address, self._after.get(broker.name, ""))
        except ResponseError as exc:
            if exc.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
            return None

    def _take(self, broker: str, page: TopicFiguresPage, now: float) -> None:
        seen = self._round.setdefault(broker, set())
        for figures in page.topics:
            self._told.setdefault(figures.topic, {})[broker] = now, figures
            seen.add(figures.topic)
        self._after[broker] = page.next
        if page.next:
            return
        del self._round[broker]  # it has told all that it has: what it did not name is gone
        for topic in [topic for topic, told in self._told.items() if broker in told and topic not in seen]:
            self._forget(topic, broker)

    def _forget(self, topic: str, broker: str) -> None:
        del self._told[topic][broker]
        if not self._told[topic]:
            del self._told[topic]

    def _forget_brokers(self, living: set[str]) -> None:
        gone = {broker for told in self._told.values() for broker in told} - living
        for topic in [topic for topic, told in self._told.items() if gone & told.keys()]:
            for broker in gone & self._told[topic].keys():
                self._forget(topic, broker)
        for table in (self._after, self._round, self._silent_until, self._answered_at):
            for broker in table.keys() - living:
                del table[broker]  # type: ignore[attr-defined]

    def _facts(self, topic: str, brokers: Iterable[str]) -> TopicFacts:
        told = self._told.get(topic, {})
        missing = [broker for broker in brokers if broker not in told]
        sizes = [figures.size_bytes for _, figures in told.values()]
        known = sum(size for size in sizes if size is not None)
        why = self._why(missing) if missing or not told else None
        if why is None and None in sizes:
            why = gettext("counted within seconds")
        return TopicFacts(
            None if why else known,
            all(figures.is_exact for _, figures in told.values()),
            _senders(told),
            min((at for at, _ in told.values()), default=0.0),
            why,
            any(self._looked_at - self._answered_at.get(broker, 0.0) > ANSWERED_S for broker in told),
        )

    def _why(self, missing: list[str]) -> str:
        telling_less = [broker for broker in missing if broker in self._silent_until]
        if telling_less:
            return gettext("%(brokers)s: brokers of RocketMQ do not report it") % {"brokers": joined(telling_less)}
        if missing:
            return gettext("%(brokers)s has not reported it yet") % {"brokers": joined(missing)}
        return gettext("known in a few seconds")


def _senders(told: Mapping[str, tuple[float, TopicFigures]]) -> tuple[Sender, ...]:
    """One a client, over its connections to all brokers; who sent last comes first."""
    found: dict[str, Sender] = {}
    for broker, (_, figures) in told.items():
        for one in figures.producers:
            name = one.client_id or one.address
            known = found.get(name) or Sender(name, one.language, (), (), (), 0.0)
            found[name] = Sender(
                name,
                known.language or one.language,
                tuple(dict.fromkeys((*known.groups, *one.groups))),
                tuple(dict.fromkeys((*known.addresses, one.address))),
                tuple(dict.fromkeys((*known.brokers, broker))),
                max(known.last_stored_at, one.last_stored_at / 1000),
            )
    return tuple(sorted(found.values(), key=lambda one: (-one.last_stored_at, one.name)))


topic_book = TopicBook()
