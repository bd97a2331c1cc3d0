"""Alarms and incidents become alerts: one table for those of rules and of checks."""

from __future__ import annotations

import json

from django.db import migrations, models

FIELDS = {"title": "title", "evidence": "text", "worst": "worst"}  # an incident's, and an alert's


def take_incidents(apps, schema_editor):
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


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0001_tables")]

    operations = [
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
        migrations.RunPython(take_incidents, migrations.RunPython.noop, elidable=True),
        migrations.DeleteModel("IncidentRow"),
    ]
