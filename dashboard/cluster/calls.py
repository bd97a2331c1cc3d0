"""What the gateway's parts share: one AdminClient, calls with a deadline, the list of brokers, calls to all at once.

The AdminClient lives on one event loop. The process has one loop, so there is one client; a second loop (tests) gets
its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from dashboard.cluster import units
from dashboard.cluster.errors import BrokerUnreachable, ClusterUnreachable, GatewayError, Refused, explain
from dashboard.cluster.values import BrokerRef, ClusterView, PartialFailure
from dashboard.language.sentences import gettext, joined
from dashboard.limits.wire import check
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConnectError, GantryError, RequestTimeout, ResponseError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig
from gantrymq.timeouts import timeout

CALL_TIMEOUT_S = 2.0  # a page waits no longer than this for one answer
SILENT_TIMEOUT_S = 0.4  # a broker that did not answer last time gets only this long, until it answers again
SILENT_TRY_EACH_S = 0.5
CLUSTER_MAX_AGE_S = 1.0  # several parts of one page share one look at the name server
KNOWN_WAIT_S = 0.25  # for an answer of which an older one is known; longer where the last took longer
KNOWN_WAIT_TURNS = 5
NAMES_KEPT_MAX = 64  # topics, or groups, whose last answers are kept: those that were looked at last
CALLS_AT_ONCE = 8  # to one cluster from one page: a dashboard must never be able to hurt a broker

Answer = TypeVar("Answer")
Table = TypeVar("Table")
CALL_ERRORS = (GantryError, OSError, TimeoutError)


class ClusterCalls:
    """Calls to one cluster. `namesrv` is "host:port;host:port"."""

    def __init__(
        self, namesrv: str, tls: TlsConfig | None, credentials: Credentials | None, clock: Callable[[], float]
    ) -> None:
        self.namesrv = namesrv
        self._tls = tls
        self._credentials = credentials
        self.clock = clock
        self._admin: AdminClient | None = None
        self._admin_loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None
        self._cluster: ClusterView | None = None
        self._silent: dict[str, Exception] = {}  # addresses that did not answer last time, and how not
        self._tried: set[str] = set()  # of these, those that were asked just now whether they do again
        self._late: dict[str, asyncio.Task[object]] = {}  # addresses, and what they were asked and still owe

    # ---- the client

    async def admin(self) -> AdminClient:
        """The started client of the running loop."""
        loop = asyncio.get_running_loop()
        if self._admin_loop is not loop:
            self._admin, self._admin_loop, self._opening = None, loop, asyncio.Lock()
        assert self._opening is not None
        async with self._opening:
            if self._admin is None:
                admin = AdminClient(self.namesrv, tls=self._tls, credentials=self._credentials)
                admin.calls.remoting.before_request = check
                await admin.__aenter__()
                self._admin = admin
            return self._admin

    async def close(self) -> None:
        """Close the connections; the next call opens them again."""
        admin, self._admin = self._admin, None
        if admin is not None and self._admin_loop is asyncio.get_running_loop():
            await admin.__aexit__(None, None, None)

    async def call(self, ask: Callable[[AdminClient], Awaitable[Answer]], timeout_s: float = CALL_TIMEOUT_S) -> Answer:
        """One call with a deadline. Raises what the client raises, and TimeoutError."""
        admin = await self.admin()
        async with timeout(timeout_s):
            return await ask(admin)

    async def call_broker(
        self, broker: BrokerRef, ask: Callable[[AdminClient], Awaitable[Answer]], timeout_s: float = CALL_TIMEOUT_S
    ) -> Answer:
        """As `call`, for one broker: after a silence it gets less time, so that pages stay quick.

        While one call tries whether it answers again, the others don't wait with it: a list asks for each of its rows.
        """
        address = broker.address
        if address not in self._silent:
            return await self._call_listening(address, ask, timeout_s)
        if address in self._tried:
            raise self._silent[address].with_traceback(None)
        self._tried.add(address)
        try:
            return await self._call_listening(address, ask, min(timeout_s, SILENT_TIMEOUT_S))
        finally:
            asyncio.get_running_loop().call_later(SILENT_TRY_EACH_S, self._tried.discard, address)

    async def _call_listening(
        self, address: str, ask: Callable[[AdminClient], Awaitable[Answer]], timeout_s: float
    ) -> Answer:
        try:
            answer = await self.call(ask, timeout_s)
        except (TimeoutError, RequestTimeout, ConnectError) as exc:
            self._silent[address] = exc
            raise
        self._silent.pop(address, None)
        return answer

    def is_late(self, address: str) -> bool:
        """Whether the broker did not answer last time, or lets a list wait now."""
        return address in self._silent or address in self._late

    async def _soon(self, address: str, call: asyncio.Task[Answer], wait_s: float) -> Answer:
        """The call's answer if it comes soon; else TimeoutError, and the call goes on.

        The wait is counted in turns of the loop, so that a process that stood still takes no one else for late.
        """
        for _ in range(KNOWN_WAIT_TURNS):
            if (await asyncio.wait({call}, timeout=wait_s / KNOWN_WAIT_TURNS))[0]:
                return await call
        self._late[address] = call
        call.add_done_callback(lambda done: self._ended(address, done))
        raise TimeoutError

    def _ended(self, address: str, call: asyncio.Task[Answer]) -> None:
        if self._late.get(address) is call:
            del self._late[address]
        if not call.cancelled():
            call.exception()  # `_silent` has it

    # ---- the cluster

    async def cluster(self, *, timeout_s: float = CALL_TIMEOUT_S, max_age_s: float = CLUSTER_MAX_AGE_S) -> ClusterView:
        """The brokers. When the name server is silent: the last known ones, with `why`. Raises ClusterUnreachable."""
        known, now = self._cluster, self.clock()
        if known is not None and known.why is None and now - known.at < max_age_s:
            return known
        try:
            info = await self.call(lambda admin: admin.cluster.info(), timeout_s)
        except CALL_ERRORS as exc:
            why = gettext("name server %(namesrv)s: %(exc)s") % {"namesrv": self.namesrv, "exc": explain(exc)}
            if known is None or not known.brokers + known.slaves:
                raise ClusterUnreachable(why) from exc
            self._cluster = replace(known, why=why)
            return self._cluster
        brokers = sorted(
            (
                BrokerRef(name, address, data.cluster, broker_id)
                for name, data in info.broker_addr_table.items()
                for broker_id, address in data.broker_addrs.items()
                if address
            ),
            key=lambda broker: (broker.name, broker.broker_id),
        )
        masters = tuple(broker for broker in brokers if not broker.broker_id)
        slaves = tuple(broker for broker in brokers if broker.broker_id)
        self._cluster = ClusterView(masters, self.clock(), slaves=slaves)
        return self._cluster

    # ---- all brokers

    async def ask_brokers(
        self,
        brokers: Sequence[BrokerRef],
        ask: Callable[[AdminClient, BrokerRef], Awaitable[Answer]],
        timeout_s: float = CALL_TIMEOUT_S,
        waits: Mapping[str, float] | None = None,
    ) -> tuple[list[tuple[BrokerRef, Answer]], list[PartialFailure]]:
        """All brokers side by side: who answered what, and who did not. "No such topic" is no answer and no failure.

        waits: by address, seconds for an answer that need not come; then the call goes on without the caller.
        """

        async def one(broker: BrokerRef) -> Answer:
            called = self.call_broker(broker, lambda admin: ask(admin, broker), timeout_s)
            wait_s = (waits or {}).get(broker.address)
            if wait_s is None:
                return await called
            return await self._soon(broker.address, asyncio.ensure_future(called), wait_s)

        results = await asyncio.gather(*map(one, brokers), return_exceptions=True)
        answers: list[tuple[BrokerRef, Answer]] = []
        failures: list[PartialFailure] = []
        for broker, result in zip(brokers, results, strict=True):
            if isinstance(result, ResponseError) and result.code == ResponseCode.TOPIC_NOT_EXIST:
                continue
            if isinstance(result, CALL_ERRORS):
                failures.append(PartialFailure(broker.name, explain(result)))
            elif isinstance(result, BaseException):
                raise result
            else:
                answers.append((broker, result))
        return answers, failures

    async def tell_brokers(
        self, brokers: Sequence[BrokerRef], tell: Callable[[AdminClient, BrokerRef], Awaitable[object]]
    ) -> None:
        """A change on every broker; raises when any of them did not take it, naming it."""
        for broker in brokers:
            try:
                await self.call(lambda admin, broker=broker: tell(admin, broker))  # type: ignore[misc]
            except ResponseError as exc:
                raise Refused(joined([broker.name, explain(exc)], ": ")) from exc
            except CALL_ERRORS as exc:
                raise BrokerUnreachable(joined([broker.name, explain(exc)], ": ")) from exc


@contextlib.contextmanager
def refusals_of(broker: str = "") -> Iterator[None]:
    """Raises Refused for what a broker refused, BrokerUnreachable, which names it, for one that did not answer."""
    try:
        yield
    except GatewayError:
        raise
    except ResponseError as exc:
        raise Refused(explain(exc)) from exc
    except CALL_ERRORS as exc:
        raise BrokerUnreachable(joined([broker, explain(exc)], ": ") if broker else explain(exc)) from exc


@dataclass(frozen=True, slots=True)
class Told(Generic[Answer]):
    """What a broker answered last, when by the calls' clock, and how long its answers take."""

    answer: Answer
    at: float
    took_s: float


class LastAnswers(Generic[Answer]):
    """One question to all brokers: a list of what they answer does not wait for one that has just fallen silent.

    Its answer of before is taken then; the call goes on, so that the next one to ask finds what came late.
    """

    def __init__(self, ask: Callable[[AdminClient, BrokerRef], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._told: dict[BrokerRef, Told[Answer]] = {}
        self._awaited: set[BrokerRef] = set()  # what they told was true before a change

    async def ask(
        self, calls: ClusterCalls, brokers: Sequence[BrokerRef], *, patiently: bool = False
    ) -> tuple[list[tuple[BrokerRef, Told[Answer]]], list[PartialFailure]]:
        """What each broker told last, now if it can; and who did not now. patiently: wait as long as for any call."""

        async def noted(admin: AdminClient, broker: BrokerRef) -> Told[Answer]:
            begun = time.monotonic()
            answer, before = await self._ask(admin, broker), self._told.get(broker)
            took_s = time.monotonic() - begun
            if before is not None:
                took_s = min(took_s, 2 * before.took_s)  # one answer that came late does not make the broker slow
            told = self._told[broker] = Told(answer, calls.clock(), took_s)
            self._awaited.discard(broker)
            return told

        waits = {
            broker.address: max(KNOWN_WAIT_S, 2 * told.took_s)
            for broker, told in self._told.items()
            if broker not in self._awaited and not patiently
        }
        for broker in brokers:
            if not patiently and broker not in self._told and calls.is_late(broker.address):
                waits[broker.address] = max(KNOWN_WAIT_S, SILENT_TIMEOUT_S)  # it owes another answer already
        answers, failures = await calls.ask_brokers(brokers, noted, waits=waits)
        self._told = {broker: told for broker, told in self._told.items() if broker in brokers}
        missing = self._told.keys() - {broker for broker, _ in answers}
        old = [(broker, self._told[broker]) for broker in brokers if broker in missing]
        ages = {broker.name: units.ago(told.at, calls.clock()) for broker, told in old}
        return [*answers, *old], [_with_age(failure, ages.get(failure.what)) for failure in failures]

    def changed(self) -> None:
        """What they told is true no more: the next one to ask waits for a new answer."""
        self._awaited = set(self._told)


class LastAnswersOf(Generic[Answer]):
    """The same for a question about one name, such as a topic's; kept for the NAMES_KEPT_MAX asked for last."""

    def __init__(self, ask: Callable[[AdminClient, BrokerRef, str], Awaitable[Answer]]) -> None:
        self._ask = ask
        self._of: dict[str, LastAnswers[Answer]] = {}  # the one asked for last is the last

    async def ask(
        self, name: str, calls: ClusterCalls, brokers: Sequence[BrokerRef]
    ) -> tuple[list[tuple[BrokerRef, Told[Answer]]], list[PartialFailure]]:
        """What each broker told last of it, now if it can; and who did not now."""
        known = self._of.pop(name, None)
        if known is None:
            known = LastAnswers(lambda admin, broker: self._ask(admin, broker, name))
        self._of[name] = known
        if len(self._of) > NAMES_KEPT_MAX:
            del self._of[next(iter(self._of))]
        return await known.ask(calls, brokers)

    def changed(self) -> None:
        """What brokers told is true no more: the next one to ask waits for a new answer."""
        self._of.clear()


def _with_age(failure: PartialFailure, age: str | None) -> PartialFailure:
    if age is None:
        return failure
    shown = gettext("%(reason)s; showing its last answer, from %(age)s") % {"reason": failure.reason, "age": age}
    return replace(failure, reason=shown)


class KeptTables(Generic[Table]):
    """A table that each broker sends whole, such as all its topics: the same bytes again are not decoded again.

    The same bytes give the same object, so what was made of it may be kept as well. It must not be changed.
    """

    def __init__(self, code: int, decode: Callable[[BrokerRef, bytes], Table]) -> None:
        self._code = code
        self._decode = decode
        self._kept: dict[str, tuple[BrokerRef, bytes, Table]] = {}  # by address

    async def ask(self, admin: AdminClient, broker: BrokerRef) -> Table:
        """What the broker has now. Raises what the client raises, and BodyError."""
        body = (await admin.calls.call(broker.address, self._code)).body
        kept = self._kept.get(broker.address)
        if kept is not None and kept[0] == broker and kept[1] == body:
            return kept[2]
        table = self._decode(broker, body)
        self._kept[broker.address] = broker, body, table
        return table

    def keep_only(self, brokers: Sequence[BrokerRef]) -> None:
        """Forget those that are not there any more."""
        there = {broker.address for broker in brokers}
        self._kept = {address: kept for address, kept in self._kept.items() if address in there}


def own_names(cluster: ClusterView) -> frozenset[str]:
    """Clusters and brokers have topics of their own name."""
    return frozenset({broker.name for broker in cluster.brokers} | {broker.cluster for broker in cluster.brokers})
