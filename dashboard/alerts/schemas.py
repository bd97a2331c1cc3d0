"""What REST takes and gives of alerts. Secrets come in and never go out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, cast

from ninja import Field, Schema

from appliance.settings.alert_names import ChannelKind, RuleKind, RuleLevel
from dashboard.alerts.alert_rows import with_present
from dashboard.alerts.editing import RuleValues, shown_settings
from dashboard.alerts.sending.channel_kinds import described
from dashboard.models.alerts import AlertChannel, AlertMute, AlertNote, AlertRow, AlertRule
from dashboard.rest.lists import Listed
from dashboard.rest.values import NUMBER_MAX, OPEN, Given, Moment, Out, named
from dashboard.status.check import Level

RowId = Annotated[int, Field(ge=1, le=NUMBER_MAX)]
# Bodies are strict, and JSON has no enumerations: their names come as texts.
RuleKindName = Annotated[RuleKind, Field(strict=False)]
RuleLevelName = Annotated[RuleLevel, Field(strict=False)]
ChannelKindName = Annotated[ChannelKind, Field(strict=False)]
LEVELS = {RuleLevel.ATTENTION: Level.WARN, RuleLevel.PROBLEM: Level.BAD}


def _level(number: int) -> RuleLevel:
    return next(name for name, level in LEVELS.items() if level == number)


Pattern = Annotated[
    str,
    Field(
        max_length=AlertRule.PATTERN_MAX,
        description="only groups, topics or brokers with matching names: orders-*; empty: all",
    ),
]


class RuleFields(Given):
    """What a rule is, but for its channels. clear: in the unit of the threshold."""

    name: str = Field(min_length=1, max_length=AlertRule.NAME_MAX, description="its name in notifications")
    kind: RuleKindName
    threshold: float = Field(
        ge=0,
        allow_inf_nan=False,
        description="seconds, messages, percent, hours or messages per second, depending on the kind",
    )
    clear: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="the alert resolves past this value; absent: the threshold"
    )
    for_s: float = Field(
        0, ge=0, le=86_400, description="how long the value is beyond the threshold before an alert opens"
    )
    clear_s: float = Field(
        60, ge=0, le=86_400, description="how long the value is past `clear` before the alert resolves"
    )
    pattern: Pattern = ""
    level: RuleLevelName = RuleLevel.ATTENTION
    is_on: bool = Field(True, description="the rule is on")

    def values_with(self, channels: list[int]) -> RuleValues:
        return RuleValues(
            name=self.name, kind=self.kind, pattern=self.pattern, threshold=self.threshold, clear=self.clear,
            for_s=self.for_s, clear_s=self.clear_s, level=LEVELS[self.level], is_on=self.is_on, channels=channels,
        )  # fmt: skip


class RuleIn(RuleFields):
    """A rule. clear: in the unit of the threshold."""

    channel_ids: list[RowId] = Field([], max_length=50, description="the id of a channel that is notified; empty: all")

    def values(self) -> RuleValues:
        return self.values_with(self.channel_ids)


class RuleOut(RuleIn):
    """A rule that is there. is_preset: one of those that are on from the start."""

    model_config = OPEN
    id: int
    is_preset: bool

    @classmethod
    def of(cls, row: AlertRule) -> RuleOut:
        return cls(
            id=row.pk, is_preset=bool(row.preset), name=row.name, kind=RuleKind(row.kind), threshold=row.threshold,
            clear=row.clear, for_s=row.for_s, clear_s=row.clear_s, pattern=row.pattern,
            level=_level(row.level), is_on=row.is_on,
            channel_ids=[channel.pk for channel in row.channels.all()],
        )  # fmt: skip


class RuleList(Listed[RuleOut]):
    """All rules."""


class RulePreviewOut(Schema):
    """How often a rule would have opened an alert. hours: of how many hours of the days the figures
    are known, rounded up."""

    times: int
    days: int
    hours: int
    last_at: datetime | None


class AlertNoteOut(Out):
    """What an account wrote about an alert."""

    text: str
    created_by: str = named("who")
    created_at: datetime = named("made_at")


class AlertOut(Out):
    """One alert. text: as it opened; present: what shows it now, null once it is resolved. rule_id null: a check of
    the Overview opened it, subject is its name; level, title and worst are of its worst moment then. ended_at
    null: it is open. is_told: channels got it. acknowledged_at null: it is not acknowledged. assigned_to: an
    account's name, "" for none.
    """

    id: int
    rule_id: int | None
    subject: str
    level: RuleLevelName
    title: str
    text: str
    present: str | None
    worst: str
    started_at: datetime = named("begun_at")
    ended_at: datetime | None
    duration_s: float
    is_told: bool
    acknowledged_at: datetime | None
    acknowledged_by: str
    assigned_to: str
    notes: list[AlertNoteOut]

    @classmethod
    def of_row(cls, row: AlertRow) -> AlertOut:
        notes = [AlertNoteOut.of(note) for note in row.notes.all()]
        present = (with_present(row).present or row.text) if row.ended_at is None else None
        return cls.of(row, level=_level(row.level), present=present, worst=row.worst or row.text, notes=notes)


class AcknowledgedIn(Given):
    """Whether the alert is acknowledged."""

    is_acknowledged: bool


class AssigneeIn(Given):
    """Who handles the alert."""

    user: str = Field(max_length=AlertRow.WHO_MAX, description="an account that may handle alerts; empty: none")


class AlertNoteIn(Given):
    """What to write about the alert."""

    text: str = Field(min_length=1, max_length=AlertNote.TEXT_MAX, description="a sentence for the others")


class AlertList(Listed[AlertOut]):
    """The open ones first, then the newest."""


class ChannelIn(Given):
    """A channel. settings: as its kind has them; security: starttls, tls or none; secret: where the kind signs;
    language: of notifications, en or zh-hans. A secret that is absent stays as it is, and is wanted when the host
    changes."""

    name: str = Field(min_length=1, max_length=AlertChannel.NAME_MAX, description="its name on pages")
    kind: ChannelKindName
    settings: dict[str, str | int | None] = Field(
        max_length=20,
        description=f"{described()}; language of the notifications",
    )
    is_on: bool = Field(True, description="the channel is on")


class ChannelOut(Schema):
    """A channel that is there. settings: those that are no secret."""

    id: int
    name: str
    kind: ChannelKindName
    settings: dict[str, Any]
    is_on: bool

    @classmethod
    def of(cls, row: AlertChannel) -> ChannelOut:
        return cls(id=row.pk, name=row.name, kind=cast(Any, row.kind), settings=shown_settings(row), is_on=row.is_on)


class MuteIn(Given):
    """No notifications until then. rule_id null: every rule."""

    rule_id: RowId | None = Field(None, description="the id of one rule; absent: every rule")
    pattern: Pattern = ""
    reason: str = Field(min_length=1, max_length=200, description="why")
    ends_at: Moment = Field(description="when notifications are sent again: 2026-11-21T10:00:00Z")


class MuteOut(MuteIn):
    """A mute that is in force."""

    model_config = OPEN
    id: int
    created_by: str
    created_at: datetime

    @classmethod
    def of(cls, row: AlertMute) -> MuteOut:
        return cls(
            id=row.pk, rule_id=row.rule.pk if row.rule else None, pattern=row.pattern, reason=row.reason,
            ends_at=row.until, created_by=row.who, created_at=row.begun_at,
        )  # fmt: skip


class MuteList(Listed[MuteOut]):
    """Those in force."""


class ChannelList(Listed[ChannelOut]):
    """By name."""


class NoticeOut(Out):
    """One notice to one channel. answer: the begin of the last one."""

    id: int = named("pk")
    channel_id: int
    what: Literal["fired", "acknowledged", "resolved", "test", "weekly"]
    title: str
    state: Literal["waiting", "sent", "failed"]
    attempts: int
    created_at: datetime = named("made_at")
    due_at: datetime
    ended_at: datetime | None
    answer: str


class NoticeList(Listed[NoticeOut]):
    """The newest first."""
