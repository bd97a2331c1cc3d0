"""A small shop. Its database is the one of the environment, SQLite in the project's folder without."""

import json
import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent
SECRET_KEY = "of a test"
USE_TZ = True
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
    "django.contrib.messages", "gantrymq.contrib.django", "shop",
]  # fmt: skip
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES = {
    "default": json.loads(os.environ["SHOP_DATABASE"])
    if "SHOP_DATABASE" in os.environ
    else {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "db.sqlite3", "OPTIONS": {"timeout": 120}}
}
GANTRYMQ = {
    "NAME_SERVERS": os.environ["SHOP_NAME_SERVERS"],
    "PRODUCER": {"group": "shop"},
    "CONSUMER": {"concurrency": 2, "close_wait_s": 50.0},
    "OUTBOX": json.loads(os.environ.get("SHOP_OUTBOX", "{}")),
}
