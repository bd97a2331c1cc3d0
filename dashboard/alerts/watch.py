"""The service: each second it checks the rules against the newest snapshot, keeps what rings, and sends notices."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from dashboard.alerts import telling
from dashboard.alerts.kinds import KINDS, NAME_SERVER, Readings
from dashboard.alerts.rule_book import AlarmBook, Rule
from dashboard.alerts.rules import changes, ensure_presets, rules_in_force
from dashboard.alerts.sending.delivery import Sender
from dashboard.status.board import Board, Snapshot, board

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
RULES_EACH_S = 30.0  # read again, though the pages say when they change one
FORGET_EACH_S = 3600.0


class AlarmWatch:
    """`run` watches until cancelled."""

    def __init__(self, of: Board = board) -> None:
        self._board = of
        self._book = AlarmBook()
        self._rules: list[Rule] = []
        self._rules_at: tuple[int, float] = (-1, float("-inf"))  # how many changes there had been, and when
        self._is_adopted = False
        self._seen_at = 0.0
        self._namesrv_silent_since: float | None = None
        self._forgotten_at = float("-inf")

    async def run(self) -> None:
        sender = Sender()
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await asyncio.sleep(PERIOD_S)
                    try:
                        await self.look()
                        await sender.send_due(group)
                    except DatabaseError as exc:  # the database's own check says it on the page
                        logger.debug("alarms not looked at", extra={"event": "alarms_wait", "error": str(exc)})
                    except Exception:  # a bug here must not end the watching for good
                        logger.exception("looking for alarms failed", extra={"event": "alarms_failed"})
        finally:
            sender.close()

    async def look(self) -> None:
        """One turn: the rules, the readings, what is written and told."""
        await self._read_rules()
        snapshot = self._board.snapshot
        if snapshot is not None and snapshot.at != self._seen_at:
            self._seen_at = snapshot.at
            self._book.note(self._rules, self._readings(snapshot), snapshot.at)
        await sync_to_async(telling.write)(self._book)
        if time.monotonic() - self._forgotten_at >= FORGET_EACH_S:
            await sync_to_async(telling.forget)()
            self._forgotten_at = time.monotonic()

    async def _read_rules(self) -> None:
        count, now = changes.count, time.monotonic()
        if count == self._rules_at[0] and now - self._rules_at[1] < RULES_EACH_S:
            return
        if not self._is_adopted:
            await sync_to_async(ensure_presets)()
        self._rules = await sync_to_async(rules_in_force)()
        by_key = {rule.pk: rule for rule in self._rules}
        for alarm in self._book.open.values():
            alarm.rule = by_key.get(alarm.rule.pk, alarm.rule)
        if not self._is_adopted:
            self._book.adopt(await sync_to_async(telling.open_alarms)(self._rules), time.time())
            self._is_adopted = True
        self._rules_at = count, now

    def _readings(self, snapshot: Snapshot) -> dict[str, Readings]:
        """What the rules need, by kind."""
        found = {key: KINDS[key].read(snapshot) for key in _kinds_of(self._rules)}
        if "broker-silent" in found:
            if snapshot.namesrv_why is None:
                self._namesrv_silent_since = None
            elif self._namesrv_silent_since is None:
                self._namesrv_silent_since = snapshot.at
            since = self._namesrv_silent_since
            found["broker-silent"] = {
                **found["broker-silent"],
                NAME_SERVER: 0.0 if since is None else snapshot.at - since,
            }
        return found


def _kinds_of(rules: Sequence[Rule]) -> set[str]:
    return {rule.kind for rule in rules}
