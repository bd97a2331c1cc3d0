"""Tables of the dashboard's database. Django looks for models here."""

from dashboard.models.incidents import IncidentRow
from dashboard.models.management import ApiToken, BookingTurn, LoginFailure, MetricSample, Role, SetupToken, User
from dashboard.models.reports import ReportPlan, ReportRun

__all__ = [
    "ApiToken",
    "BookingTurn",
    "IncidentRow",
    "LoginFailure",
    "MetricSample",
    "ReportPlan",
    "ReportRun",
    "Role",
    "SetupToken",
    "User",
]
