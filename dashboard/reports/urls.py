"""Addresses below /reports/."""

from __future__ import annotations

from django.urls import path

from dashboard.reports import settings_views
from dashboard.reports import views as reports

app_name = "reports"

urlpatterns = [
    path("", reports.index, name="index"),
    path("run", reports.run_now, name="run"),
    path("schedule", settings_views.schedule, name="schedule"),
    path("promises", settings_views.promises, name="promises"),
    path("weekly", settings_views.weekly, name="weekly"),
    path("weekly/send", settings_views.send_weekly, name="send-weekly"),
    path("runs", reports.runs, name="runs"),
    path("runs/<str:run_id>", reports.detail, name="detail"),
    path("runs/<str:run_id>/stop", reports.stop_run, name="stop"),
    path("runs/<str:run_id>/again", reports.run_again, name="again"),
    path("runs/<str:run_id>/<slug:report>.<str:suffix>", reports.download, name="download"),
]
