"""Tables of the dashboard's database. Django looks for models here."""

from dashboard.models.alerts import (
    AlertChannel,
    AlertDelivery,
    AlertMute,
    AlertNote,
    AlertRow,
    AlertRule,
    ChannelKind,
    DeliveryState,
)
from dashboard.models.audit import AuditEntry, Result, TrailPosition, Way
from dashboard.models.dead_letters import PutBackRow, PutBackRun, PutBackState
from dashboard.models.group_moves import GroupMove
from dashboard.models.history import HistoryBlock, HistoryMark
from dashboard.models.identities import Identity
from dashboard.models.latency import LatencyBlock
from dashboard.models.management import (
    ApiToken,
    BookingTurn,
    Invitation,
    LoginFailure,
    MetricSample,
    Role,
    SetupToken,
    User,
)
from dashboard.models.reports import GroupPromise, ReportPlan, ReportRun, WeeklyMail
from dashboard.models.saved_searches import SavedSearch
from dashboard.models.topic_changes import TopicChangeResult, TopicChangeRun, TopicChangeState

__all__ = [
    "AlertChannel",
    "AlertDelivery",
    "AlertMute",
    "AlertNote",
    "AlertRow",
    "AlertRule",
    "ApiToken",
    "AuditEntry",
    "BookingTurn",
    "ChannelKind",
    "DeliveryState",
    "GroupMove",
    "GroupPromise",
    "HistoryBlock",
    "HistoryMark",
    "Identity",
    "Invitation",
    "LatencyBlock",
    "LoginFailure",
    "MetricSample",
    "PutBackRow",
    "PutBackRun",
    "PutBackState",
    "ReportPlan",
    "ReportRun",
    "Result",
    "Role",
    "SavedSearch",
    "SetupToken",
    "TopicChangeResult",
    "TopicChangeRun",
    "TopicChangeState",
    "TrailPosition",
    "User",
    "Way",
    "WeeklyMail",
]
