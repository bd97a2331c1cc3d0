"""Sends what is due, each channel by itself: one that hangs holds up no other. A failed attempt is made again, later.

How often and how late is bounded. A process that ends in between sends the same delivery again under the same number.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
import smtplib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from dashboard.alerts.sending.mail import NETWORKS, Mail
from dashboard.alerts.sending.outgoing import Outcome, outcome_of, request_for, without_secrets
from dashboard.language.sentences import gettext
from dashboard.models.alerts import AlertChannel, AlertDelivery, ChannelKind, DeliveryState
from dashboard.outward.http_call import Call, Request
from dashboard.outward.targets import NotResolved, TargetRefused, resolve
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

RETRY_AFTER_S = (5, 15, 60, 300, 900, 3600)  # then it has failed
WHOLE_TIMEOUT_S = 30.0  # of one attempt
AT_ONCE_MAX = 8  # channels
ANSWER_BYTES_MAX = 4096
OF_A_CHANNEL_MAX = 20  # deliveries that a turn of a channel sends, one after the other


class Sender:
    """`send_due` begins what is due; use it as a context: leaving it ends the threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="alarms")
        self._busy: dict[int, asyncio.Task[None]] = {}

    async def send_due(self, group: asyncio.TaskGroup) -> None:
        """Begin with each channel that has something due and nothing under way."""
        self._busy = {key: task for key, task in self._busy.items() if not task.done()}
        waiting = _due().exclude(channel_id__in=list(self._busy)).order_by("channel_id")
        async for key in waiting.values_list("channel_id", flat=True).distinct()[:AT_ONCE_MAX]:
            if len(self._busy) < AT_ONCE_MAX:
                self._busy[key] = group.create_task(self._send_channel(key), name="alarm-channel")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def attempt(self, delivery: AlertDelivery, channel: AlertChannel, *, may_retry: bool = True) -> None:
        """Send one delivery once, and write down what came of it."""
        outcome = await self._send(delivery, channel)
        delivery.attempts += 1
        now = timezone.now()
        delivery.answer = without_secrets(outcome.answer, channel.known_settings())[: AlertDelivery.ANSWER_MAX]
        if outcome.is_done:
            delivery.state, delivery.ended_at = DeliveryState.SENT, now
        elif may_retry and outcome.may_retry and delivery.attempts <= len(RETRY_AFTER_S):
            delivery.due_at = now + timedelta(seconds=RETRY_AFTER_S[delivery.attempts - 1])
        else:
            delivery.state, delivery.ended_at = DeliveryState.FAILED, now
        await delivery.asave(update_fields=["attempts", "answer", "state", "ended_at", "due_at"])
        if not outcome.is_done:
            facts = {"event": "alarm_not_delivered", "channel": channel.name, "attempt": delivery.attempts}
            logger.warning(
                "notification not delivered", extra=facts | {"state": delivery.state, "answer": delivery.answer}
            )

    async def _send_channel(self, key: int) -> None:
        try:
            async for delivery in (
                _due().filter(channel_id=key).select_related("channel").order_by("pk")[:OF_A_CHANNEL_MAX]
            ):
                await self.attempt(delivery, delivery.channel)
        except Exception:  # the other channels go on, and this one is tried again
            logger.exception("sending notifications failed", extra={"event": "alarm_delivery_failed"})

    async def _send(self, delivery: AlertDelivery, channel: AlertChannel) -> Outcome:
        allowed = settings.APPLIANCE.alarm_networks_allowed
        known, number = channel.known_settings(), delivery.number
        if channel.kind == ChannelKind.MAIL:
            mail = Mail(known, delivery.notice, number, allowed)
            return await self._in_thread(lambda: Outcome(True, False, mail.send()), mail.close)
        post = request_for(channel.kind, known, delivery.notice, time.time(), number)
        request = Request("POST", post.url, post.headers, post.body)
        call = Call(request, lambda host, port: resolve(host, port, allowed, NETWORKS), ANSWER_BYTES_MAX)
        return await self._in_thread(lambda: _told(channel.kind, call), call.close)

    async def _in_thread(self, send: Callable[[], Outcome], close: Callable[[], None]) -> Outcome:
        """The outcome of a blocking send, which is ended after a while."""
        running: Any = asyncio.get_running_loop().run_in_executor(self._threads, send)
        try:
            async with timeout(WHOLE_TIMEOUT_S):
                return await running
        except TargetRefused as exc:
            return Outcome(False, False, str(exc))
        except TimeoutError:
            return Outcome(
                False, True, gettext("no answer within %(timeout_s)s s") % {"timeout_s": f"{WHOLE_TIMEOUT_S:.0f}"}
            )
        except smtplib.SMTPResponseException as exc:
            said = exc.smtp_error.decode("utf-8", "replace") if isinstance(exc.smtp_error, bytes) else exc.smtp_error
            return Outcome(False, exc.smtp_code < 500, f"{exc.smtp_code} {said}")
        except (NotResolved, OSError, http.client.HTTPException, smtplib.SMTPException) as exc:
            return Outcome(False, True, f"{type(exc).__name__}: {exc}")
        finally:
            close()


def _due() -> QuerySet[AlertDelivery]:
    """What can be sent now. Where the receiver keeps an alert's state, its end never overtakes its begin."""
    waiting = AlertDelivery.objects.filter(state=DeliveryState.WAITING)
    earlier = waiting.filter(channel=OuterRef("channel"), alert=OuterRef("alert"), pk__lt=OuterRef("pk"))
    return waiting.filter(due_at__lte=timezone.now()).exclude(Exists(earlier))


def _told(kind: str, call: Call) -> Outcome:
    answer = call.send()
    return outcome_of(kind, answer.status, answer.body.decode("utf-8", "replace"))
