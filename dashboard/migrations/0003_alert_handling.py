"""Who handles an alert, and what was written about it."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0002_alerts")]

    operations = [
        migrations.AddField("AlertRow", "acknowledged_at", models.DateTimeField(null=True)),
        migrations.AddField("AlertRow", "acknowledged_by", models.CharField(blank=True, default="", max_length=160)),
        migrations.AddField("AlertRow", "assigned_to", models.CharField(blank=True, default="", max_length=160)),
        migrations.CreateModel(
            name="AlertNote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.CharField(max_length=500)),
                ("who", models.CharField(max_length=160)),
                ("made_at", models.DateTimeField()),
                (
                    "alert",
                    models.ForeignKey("dashboard.AlertRow", on_delete=models.CASCADE, related_name="notes"),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
    ]
