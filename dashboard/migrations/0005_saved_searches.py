"""Searches of messages that accounts keep."""

from __future__ import annotations

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0004_on_call_channels")]

    operations = [
        migrations.CreateModel(
            "SavedSearch",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=255)),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=4000)),
                (
                    "user",
                    models.ForeignKey(
                        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_searches"
                    ),
                ),
            ],
            options={
                "constraints": (models.UniqueConstraint(fields=("user", "topic", "name"), name="saved_search_once"),)
            },
        ),
    ]
