"""From the tables of 0.1.0 to those of 0.2.0."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.db import migrations, models

from dashboard.migrations._table import table

FIELDS = {"title": "title", "evidence": "text", "worst": "worst"}  # an incident's, and an alert's
KINDS = [
    ("mail", "Mail"),
    ("webhook", "Webhook"),
    ("slack", "Slack"),
    ("dingtalk", "DingTalk"),
    ("feishu", "Feishu"),
    ("wecom", "WeCom"),
    ("teams", "Microsoft Teams"),
    ("pagerduty", "PagerDuty"),
    ("opsgenie", "Opsgenie"),
]
NOW = {"access": "perm", "keep": "retention", "skip": "reset-to-end", "again": "reset-to-begin"}


def take_incidents(apps: Any, schema_editor: object) -> None:
    """Each incident as the alert of a check, with its texts in codes."""
    rows = apps.get_model("dashboard", "AlertRow").objects
    known = apps.get_model("dashboard", "IncidentRow").objects.order_by("pk")
    for one in known.iterator(chunk_size=500):
        codes = json.loads(one.words) if one.words else {}
        words = {new: codes[old] for old, new in FIELDS.items() if old in codes}
        rows.create(
            rule=None,
            subject=one.identity,
            level=one.level,
            title=one.title,
            text=one.evidence,
            worst=one.worst,
            words=json.dumps(words, ensure_ascii=False) if words else "",
            begun_at=one.begun_at,
            seen_at=one.seen_at,
            ended_at=one.ended_at,
        )


def say_in_the_words_of_now(apps: Any, schema_editor: object) -> None:
    """What a kept run changed, in the words that REST has now."""
    for run in apps.get_model("dashboard", "TopicChangeRun").objects.all():
        run.wanted["what"] = NOW.get(run.wanted["what"], run.wanted["what"])
        run.save(update_fields=["wanted"])


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0001_tables")]
    # Those that commits between the two versions had: such a database with all of them has these tables. Django lists them
    # in each database that it makes, so they stay named: what is listed and not known here is taken for a newer version's.
    replaces = [
        ("dashboard", "0002_alerts"),
        ("dashboard", "0003_alert_handling"),
        ("dashboard", "0004_on_call_channels"),
        ("dashboard", "0005_saved_searches"),
        ("dashboard", "0006_latency"),
        ("dashboard", "0007_words_of_topic_changes"),
    ]

    operations = [
        # Alarms and incidents become alerts: one table for those of rules and of checks.
        migrations.RenameModel("AlarmChannel", "AlertChannel"),
        migrations.RenameModel("AlarmRule", "AlertRule"),
        migrations.RenameModel("AlarmSilence", "AlertMute"),
        migrations.RenameModel("AlarmRow", "AlertRow"),
        migrations.RenameModel("AlarmDelivery", "AlertDelivery"),
        migrations.AlterField(
            "AlertRow", "rule", models.ForeignKey("dashboard.AlertRule", null=True, on_delete=models.CASCADE)
        ),
        migrations.AlterField("AlertRow", "subject", models.CharField(max_length=500)),
        migrations.AlterField("AlertRow", "title", models.CharField(max_length=500)),
        migrations.AlterField("AlertRow", "text", models.CharField(max_length=500)),
        migrations.AlterField("AlertDelivery", "title", models.CharField(max_length=500)),
        migrations.AddField(
            "AlertRow", "worst", models.CharField(max_length=500, blank=True, default=""), preserve_default=False
        ),
        migrations.AddField("AlertRow", "seen_at", models.DateTimeField(null=True)),
        migrations.RenameIndex(
            "AlertDelivery", old_name="dashboard_a_state_c29208_idx", new_name="dashboard_a_state_0a6998_idx"
        ),
        # Who handles an alert, and what was written about it.
        migrations.AddField("AlertRow", "acknowledged_at", models.DateTimeField(null=True)),
        migrations.AddField("AlertRow", "acknowledged_by", models.CharField(blank=True, default="", max_length=160)),
        migrations.AddField("AlertRow", "assigned_to", models.CharField(blank=True, default="", max_length=160)),
        table(
            "AlertNote",
            text=models.CharField(max_length=500),
            who=models.CharField(max_length=160),
            made_at=models.DateTimeField(),
            alert=models.ForeignKey("dashboard.AlertRow", on_delete=models.CASCADE, related_name="notes"),
            options={"ordering": ["pk"]},
        ),
        # Channels to Teams, PagerDuty and Opsgenie; the last two get one alert's notices in their order.
        migrations.AlterField("AlertChannel", "kind", models.CharField(choices=KINDS, max_length=16)),
        migrations.AddField(
            "AlertDelivery", "alert", models.ForeignKey("dashboard.AlertRow", null=True, on_delete=models.CASCADE)
        ),
        table(
            "SavedSearch",
            topic=models.CharField(max_length=255),
            name=models.CharField(max_length=60),
            query=models.CharField(max_length=4000),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_searches"),
            options={
                "constraints": (models.UniqueConstraint(fields=("user", "topic", "name"), name="saved_search_once"),)
            },
        ),
        table(
            "LatencyBlock",
            topic=models.CharField(max_length=255),
            group=models.CharField(max_length=255),
            step_s=models.PositiveIntegerField(),
            start=models.PositiveBigIntegerField(),
            counts=models.BinaryField(),
            unmeasured=models.PositiveBigIntegerField(),
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["topic", "group", "step_s", "start"], name="latency_block_once")
                ],
                "indexes": [
                    models.Index(fields=["group", "start"], name="latency_block_group"),
                    models.Index(fields=["step_s", "start"], name="latency_block_step"),
                ],
            },
        ),
        # Last, as PostgreSQL alters no table whose new rows have references that it has yet to look at.
        migrations.RunPython(take_incidents),
        migrations.DeleteModel("IncidentRow"),
        migrations.RunPython(say_in_the_words_of_now),
    ]
