"""Long runs with a record in the database each, which go on when the page is closed.

Any page finds a run again, anyone who may do its work can stop it, and the next web process goes on where this one
ended: what a run has done is in its record, and a record that says "running" with no task behind it is taken up.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from django.db import DatabaseError
from django.utils import timezone

from dashboard.access.permissions import Permission, principal_of
from dashboard.cluster.errors import NotAllowed
from dashboard.language.sentences import gettext
from dashboard.limits.names import use
from dashboard.models.kept_runs import KeptRun
from dashboard.models.management import User
from gantrymq.timeouts import wait_for_event

logger = logging.getLogger(__name__)

Row = TypeVar("Row", bound=KeptRun)
State = KeptRun.State
LOOK_S = 5.0  # for runs without work, besides being told of each new one


class KeptRuns(ABC, Generic[Row]):
    """Runs of one kind. `run` works until cancelled; what is broken off then is taken up by the next web process."""

    model: type[Row]
    name: ClassVar[str]  # in logs
    event: ClassVar[str]
    permission: ClassVar[Permission]  # that the run's account needs
    account_lost_it: ClassVar[str]  # the message when the account has it no more
    at_once: ClassVar[int]
    ended_field: ClassVar[str]
    _news: ClassVar[asyncio.Event | None] = None  # of the loop that waits

    def __init__(self) -> None:
        self._working: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            while True:
                type(self)._news = news = asyncio.Event()
                await self.look()
                await wait_for_event(news, LOOK_S)
        finally:
            await self.close()

    async def look(self) -> None:
        """Begin with runs that nothing works on, the oldest first."""
        self._working = {number: task for number, task in self._working.items() if not task.done()}
        waiting = self.model._default_manager.filter(state=State.RUNNING).exclude(pk__in=list(self._working))
        async for row in waiting.order_by("started_at", "pk")[: max(0, self.at_once - len(self._working))]:
            if row.pk not in self._working:  # begun meanwhile
                await self.taken_up(row)
                self.begin(row)

    async def close(self) -> None:
        """Break off what this process works on."""
        for task in self._working.values():
            task.cancel()
        await asyncio.gather(*self._working.values(), return_exceptions=True)

    def begin(self, row: Row) -> None:
        self._working[row.pk] = asyncio.create_task(self._work(row), name=f"{self.name} {row.pk}")

    async def ended(self, number: int) -> None:
        """Wait until this process works on the run no more."""
        await self._working[number]

    @classmethod
    def tell(cls) -> None:
        """A run has come, or there may be room now."""
        if cls._news is not None:
            cls._news.set()

    @classmethod
    async def stop(cls, number: int, username: str) -> None:
        """It takes no further step. Raises NotAllowed when it has ended."""
        if not await cls.mark(number, State.STOPPED, stopped_by=username):
            raise NotAllowed(gettext("It has ended already."))

    @classmethod
    async def mark(cls, number: int, state: str, **values: Any) -> bool:
        """Have it ended, unless a person stopped it meanwhile; whether it was running."""
        running = cls.model._default_manager.filter(pk=number, state=State.RUNNING)
        return bool(await running.aupdate(state=state, **{cls.ended_field: timezone.now()}, **values))

    async def taken_up(self, row: Row) -> None:
        """Before work on a run that this process has not begun."""

    @abstractmethod
    def account(self, row: Row) -> str:
        """Whose rights the run works with."""

    @abstractmethod
    async def work(self, row: Row) -> None:
        """Take steps until the end, and write it down. Raises DatabaseError."""

    @abstractmethod
    async def end(self, row: Row, state: str, told: str) -> None:
        """Write down that it has ended, unless a person stopped it."""

    async def _work(self, row: Row) -> None:
        try:
            if await self._enter(self.account(row)):
                await self.work(row)
            else:
                await self.end(row, State.FAILED, gettext(self.account_lost_it) % {"name": self.account(row)})
        except DatabaseError as exc:  # the record still says that it runs: it is taken up again
            facts = {"event": f"{self.event}_waits", "run": row.pk, "reason": str(exc)}
            logger.warning("%s waits", self.name, extra=facts)
            await asyncio.sleep(LOOK_S)
        except Exception:
            logger.exception("%s failed", self.name, extra={"event": f"{self.event}_failed", "run": row.pk})
            await self.end(
                row, State.FAILED, gettext("This is a fault in GantryMQ. The web process's log has the details.")
            )
        finally:
            self.tell()

    async def _enter(self, username: str) -> bool:
        """Work in this task with the account's rights; False when it may not do this any more."""
        principal = principal_of(await User.objects.filter(username=username).afirst())
        if principal is None or not principal.may(self.permission):
            return False
        use(principal.names)
        return True
