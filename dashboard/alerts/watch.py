"""The service: each second it checks the newest snapshot and the rules over it, keeps the alerts, and sends notices."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.urls import reverse

from appliance.settings.alert_names import RuleKind
from dashboard.alerts import alert_rows
from dashboard.alerts.alert import Alert, Rule
from dashboard.alerts.check_alerts import CheckAlerts
from dashboard.alerts.kinds import KINDS, Readings
from dashboard.alerts.rule_alerts import RuleAlerts
from dashboard.alerts.rules import changes, ensure_presets, muted_now, rules_in_force
from dashboard.alerts.sending.delivery import Sender
from dashboard.status.board import Board, Snapshot, board
from dashboard.status.check import NAME_SERVER, Check, Level
from dashboard.status.verdict import checked

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
RULES_EACH_S = 30.0  # read again, though the pages say when they change one
FORGET_EACH_S = 3600.0


class AlertWatch:
    """`run` watches until cancelled."""

    def __init__(self, of: Board = board) -> None:
        self._board = of
        self._by_rules = RuleAlerts()
        self._by_checks = CheckAlerts()
        self._rules: list[Rule] = []
        self._rules_at: tuple[int, float] = (-1, float("-inf"))  # how many changes there had been, and when
        self._problems: list[Check] = []
        self._of_rules_too: dict[str, list[Alert]] = {}  # by the identity of a check
        self._is_adopted = False
        self._seen_at = 0.0
        self._acknowledged: set[int] = set()  # rows
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
                        logger.debug("alerts not checked", extra={"event": "alerts_wait", "error": str(exc)})
                    except Exception:  # a bug here must not end the watching for good
                        logger.exception("looking for alerts failed", extra={"event": "alerts_failed"})
        finally:
            sender.close()

    async def look(self) -> None:
        """One turn: the checks, the rules, the readings, what is written and sent. Raises DatabaseError; the checks
        are noted before, so that what the Overview shows meanwhile is written later.
        """
        snapshot = self._board.snapshot
        is_new = snapshot is not None and snapshot.at != self._seen_at
        if snapshot is not None and is_new:
            self._seen_at = snapshot.at
            self._problems = checked(snapshot)
            self._by_checks.note([one for one in self._problems if not self._by_rules.saying(one)], snapshot.at)
        await self._read_rules()
        if snapshot is not None and is_new:
            kinds = _kinds_of(self._rules)
            causes = {key: KINDS[key].causes(snapshot) for key in kinds}
            levels = {key: KINDS[key].levels(snapshot) for key in kinds}
            self._by_rules.note(self._rules, self._readings(snapshot), snapshot.at, causes, levels)
            self._board.open_of_rules = len(self._by_rules.open)
            self._hand_over(snapshot.at)
        self._board.alerts_of_rules = tuple(
            _as_check(alert.rule, alert, alert.row in self._acknowledged)
            for alert in sorted(self._by_rules.open.values(), key=lambda alert: alert.begun_at)
            if alert.rule is not None
        )
        self._board.acknowledged = frozenset(
            (alert.rule.pk if alert.rule else None, alert.subject)
            for alert in (*self._by_rules.open.values(), *self._by_checks.open())
            if alert.row in self._acknowledged
        ) | {
            (None, check)
            for check, alerts in self._of_rules_too.items()
            if all(alert.row in self._acknowledged for alert in alerts)
        }
        self._board.present_of_alerts = {
            alert.row: alert.present
            for alert in (*self._by_rules.open.values(), *self._by_checks.open())
            if alert.row is not None
        }
        await sync_to_async(alert_rows.write)(self._by_rules)
        await sync_to_async(alert_rows.write_checks)(self._by_checks, time.time())
        self._board.muted = await sync_to_async(muted_now)()
        if time.monotonic() - self._forgotten_at >= FORGET_EACH_S:
            await sync_to_async(alert_rows.forget)()
            self._forgotten_at = time.monotonic()

    def _hand_over(self, now: float) -> None:
        """What a rule says too is one alert: the rule's, which channels get."""
        self._of_rules_too = {
            check.identity: alerts for check in self._problems if (alerts := self._by_rules.saying(check))
        }
        self._board.of_rules_too = frozenset(self._of_rules_too)
        for check, alerts in self._of_rules_too.items():
            self._by_checks.hand_over(check, alerts, now)

    async def _read_rules(self) -> None:
        count, now = changes.count, time.monotonic()
        if count == self._rules_at[0] and now - self._rules_at[1] < RULES_EACH_S:
            return
        if not self._is_adopted:
            await sync_to_async(ensure_presets)()
        self._rules = await sync_to_async(rules_in_force)()
        self._acknowledged = await sync_to_async(alert_rows.acknowledged)()
        self._by_rules.take_rules(self._rules)
        if not self._is_adopted:
            self._by_rules.adopt(await sync_to_async(alert_rows.open_of_rules)(self._rules), time.time())
            self._by_checks.adopt(await sync_to_async(alert_rows.open_of_checks)(), time.time())
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


def _as_check(rule: Rule, alert: Alert, is_acknowledged: bool) -> Check:
    """An open alert, as the Overview lists it."""
    return Check(
        Level(alert.level),
        alert.title,
        alert.present,
        name=f"{rule.pk}: {alert.subject}",
        link=reverse("alerts"),
        rules=(RuleKind(rule.kind),),
        about=(alert.subject,),
        harm=KINDS[rule.kind].harm,
        is_acknowledged=is_acknowledged,
    )


def _kinds_of(rules: Sequence[Rule]) -> set[str]:
    return {rule.kind for rule in rules}
