"""Alerts: rules and their channels, mutes, alerts of rules and of checks, who handles them, and each notification."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from appliance.settings import alert_names
from dashboard.language.choice import PLAIN
from dashboard.language.sentences import said
from dashboard.status.check import Level


class RowWithWords(models.Model):
    """words: JSON, the codes of texts by field (dashboard/language/sentences.py); "" in rows of earlier versions."""

    words = models.TextField(blank=True, default="")

    class Meta:
        abstract = True

    def said(self, field: str) -> str:
        """A text of the row in the language that is active; as it was written where nothing else is known."""
        known = json.loads(self.words) if self.words else {}
        return said(known[field]) if field in known else str(getattr(self, field))


class ChannelKind(models.TextChoices):
    """Where a channel leads."""

    MAIL = alert_names.ChannelKind.MAIL.value, _("Mail")
    WEBHOOK = alert_names.ChannelKind.WEBHOOK.value, _("Webhook")
    SLACK = alert_names.ChannelKind.SLACK.value, _("Slack")
    DINGTALK = alert_names.ChannelKind.DINGTALK.value, _("DingTalk")
    FEISHU = alert_names.ChannelKind.FEISHU.value, _("Feishu")
    WECOM = alert_names.ChannelKind.WECOM.value, _("WeCom")
    TEAMS = alert_names.ChannelKind.TEAMS.value, _("Microsoft Teams")
    PAGERDUTY = alert_names.ChannelKind.PAGERDUTY.value, _("PagerDuty")
    OPSGENIE = alert_names.ChannelKind.OPSGENIE.value, _("Opsgenie")


class AlertChannel(models.Model):
    """One way to tell people. settings: JSON by kind, with its secrets; it leaves the database for a delivery only."""

    NAME_MAX: ClassVar[int] = 64

    name = models.CharField(max_length=NAME_MAX, unique=True)
    kind = models.CharField(max_length=16, choices=ChannelKind.choices)
    settings = models.TextField()
    is_on = models.BooleanField(default=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]

    def known_settings(self) -> dict[str, Any]:
        return dict(json.loads(self.settings))

    @property
    def language(self) -> str:
        """What its receivers read."""
        return str(self.known_settings().get("language") or PLAIN)


class AlertRule(models.Model):
    """When to alert. threshold, clear: in the kind's unit. preset: which of the presets it is, "" for others."""

    NAME_MAX: ClassVar[int] = 100
    PATTERN_MAX: ClassVar[int] = 255

    name = models.CharField(max_length=NAME_MAX)
    kind = models.CharField(max_length=32)
    pattern = models.CharField(max_length=PATTERN_MAX, blank=True)  # of subjects, as a shell writes it; "" is all
    threshold = models.FloatField()
    clear = models.FloatField()  # it is over when the value has been past it for clear_s
    for_s = models.FloatField()  # how long the value has to be beyond the threshold
    clear_s = models.FloatField()
    level = models.PositiveSmallIntegerField()
    is_on = models.BooleanField(default=True)
    preset = models.CharField(max_length=32, blank=True)
    channels = models.ManyToManyField(AlertChannel, blank=True)  # none: all
    deleted_at = models.DateTimeField(null=True)  # it can be had back for a while

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]

    @property
    def word(self) -> str:
        return Level(self.level).word


class AlertMute(models.Model):
    """Who wants to hear nothing of what, until when. It always ends."""

    rule = models.ForeignKey(AlertRule, null=True, on_delete=models.CASCADE)  # null: of every rule
    pattern = models.CharField(max_length=AlertRule.PATTERN_MAX, blank=True)
    reason = models.CharField(max_length=200)
    who = models.CharField(max_length=160)
    begun_at = models.DateTimeField()
    until = models.DateTimeField(db_index=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["until"]


class AlertQuery(models.QuerySet["AlertRow"]):
    """Rows in the order of the list."""

    def newest_first(self) -> AlertQuery:
        """The open ones first, then by when they began."""
        return self.order_by(models.F("ended_at").desc(nulls_first=True), "-begun_at", "-pk")

    def found(self, text: str = "", *, only_open: bool = False) -> AlertQuery:
        """Those with this in their title, as the list has them."""
        rows = self.newest_first()
        if only_open:
            rows = rows.filter(ended_at=None)
        return rows.filter(title__icontains=text) if text else rows


class AlertRow(RowWithWords):
    """One alert: of a rule about a subject, or of a check (rule is null, subject its name); see Alert for the texts.

    seen_at: the last time that is sure, for a process that was killed. is_told: channels got it. assigned_to: an
    account's name, "" for none.
    """

    TEXT_MAX: ClassVar[int] = 500
    WHO_MAX: ClassVar[int] = 160

    rule = models.ForeignKey(AlertRule, null=True, on_delete=models.CASCADE)
    subject = models.CharField(max_length=TEXT_MAX)
    level = models.PositiveSmallIntegerField()
    title = models.CharField(max_length=TEXT_MAX)
    text = models.CharField(max_length=TEXT_MAX)
    worst = models.CharField(max_length=TEXT_MAX, blank=True)
    begun_at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, db_index=True)
    is_told = models.BooleanField(default=False)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=WHO_MAX, blank=True, default="")
    assigned_to = models.CharField(max_length=WHO_MAX, blank=True, default="")

    objects = AlertQuery.as_manager()

    present = ""  # what shows it now, beside text; "" where nothing newer is known

    @property
    def texts(self) -> dict[str, str]:
        """title, text and worst for a page; worst is "" where text says it."""
        texts = {field: self.said(field) for field in ("title", "text", "worst")}
        return texts | {"worst": "" if texts["worst"] == texts["text"] else texts["worst"]}

    @property
    def opened(self) -> str:
        """What showed it as it opened; the value alone where `present` ends in the same words."""
        text, code = self.said("text"), (json.loads(self.words) if self.words else {}).get("text")
        values = code.get("with") if isinstance(code, dict) else None
        value = said(values.get("value", "")) if isinstance(values, dict) else ""
        return value if value and self.present.endswith(text.removeprefix(value)) else text

    @property
    def word(self) -> str:
        return Level(self.level).word

    @property
    def duration_s(self) -> float:
        """How long it lasted, or lasts by now."""
        return ((self.ended_at or timezone.now()) - self.begun_at).total_seconds()


class AlertNote(models.Model):
    """What an account wrote about an alert."""

    TEXT_MAX: ClassVar[int] = 500

    alert = models.ForeignKey(AlertRow, on_delete=models.CASCADE, related_name="notes")
    text = models.CharField(max_length=TEXT_MAX)
    who = models.CharField(max_length=AlertRow.WHO_MAX)
    made_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar[list[str]] = ["pk"]


class DeliveryState(models.TextChoices):
    """Where a delivery is."""

    WAITING = "waiting", _("Waiting")
    SENT = "sent", _("Sent")
    FAILED = "failed", _("Failed")


class AlertDelivery(models.Model):
    """One notice to one channel. notice: JSON, what is told; answer: the last one's begin, without secrets.

    alert: where the receiver keeps the alert's state, which one it is about: these are sent in their order.
    """

    ANSWER_MAX: ClassVar[int] = 300

    channel = models.ForeignKey(AlertChannel, on_delete=models.CASCADE, related_name="deliveries")
    what = models.CharField(max_length=16)  # fired, acknowledged, resolved, test
    title = models.CharField(max_length=AlertRow.TEXT_MAX)
    notice = models.TextField()
    state = models.CharField(max_length=8, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    made_at = models.DateTimeField(db_index=True)
    due_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    alert = models.ForeignKey(AlertRow, null=True, on_delete=models.CASCADE)
    answer = models.CharField(max_length=ANSWER_MAX, blank=True)

    class Meta:
        ordering: ClassVar[list[str]] = ["-pk"]
        indexes = [models.Index(fields=["state", "due_at"])]

    @property
    def number(self) -> str:
        """What a receiver knows it by: the same at each attempt, another one after the database was made anew."""
        return f"{self.made_at.timestamp():.0f}-{self.pk}"
