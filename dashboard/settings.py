"""Django's settings, built from the appliance's own configuration (`ApplianceConfig`, the same GANTRY_* environment).

Nothing here is meant to be edited by an operator: what can be chosen is chosen in gantry.toml, the environment or on
the command line of `gantry up`. DEBUG is always off; the process serves its own static files (`static_files`).
"""

from __future__ import annotations

import socket
from pathlib import Path

from appliance.process.data_folder import ensure_secret
from appliance.settings.appliance_config import ApplianceConfig
from dashboard.database.address import databases
from dashboard.language.compiled import compile_catalogs
from dashboard.live.layer_address import channel_layer

PROJECT_FOLDER = Path(__file__).resolve().parent.parent
APPLIANCE = ApplianceConfig.from_environment()


DEBUG = False
SECRET_KEY = ensure_secret(APPLIANCE.dashboard_folder / "secret_key")

# Other host names are refused: with DNS rebinding a page of another site could send requests to this dashboard.
ALLOWED_HOSTS = [
    "localhost",
    "127.0.0.1",
    "[::1]",
    socket.gethostname().lower(),
    APPLIANCE.advertise,
    *([APPLIANCE.bind] if APPLIANCE.bind not in ("0.0.0.0", "::") else []),
    *(name.strip().lower() for name in APPLIANCE.allowed_hosts.split(",") if name.strip()),
]

INSTALLED_APPS = [
    "channels",
    "django.forms",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "dashboard",
]

MIDDLEWARE = [
    "dashboard.http.request_ids.RequestIds",
    "dashboard.http.headers.SecurityHeaders",
    "dashboard.http.problems.ProblemMiddleware",
    "dashboard.http.language.LanguageMiddleware",
    "dashboard.http.database_guard.DatabaseGuard",
    "dashboard.api.later.RestLoader",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.audit.recording.AuditMiddleware",
    "dashboard.access.permissions.AccessMiddleware",
]

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT_FOLDER / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "dashboard.web.context.chrome",
            ],
            "builtins": [
                "dashboard.templatetags.gantry",
                "dashboard.templatetags.times",
                "django.templatetags.i18n",
                "django.templatetags.static",
            ],
        },
    }
]

DATABASES = databases(APPLIANCE)

FORM_RENDERER = "django.forms.renderers.TemplatesSetting"  # forms are drawn by templates/_form.html

AUTH_USER_MODEL = "dashboard.User"
LOGIN_URL = "login"
PASSWORD_HASHERS = ["dashboard.access.passwords.Argon2Hasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("username",)},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# Cookies are shared by all ports of one host: the port in the name keeps two appliances on one machine apart.
SESSION_COOKIE_NAME = f"gantry_session_{APPLIANCE.http_port}"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600  # seconds without a request; the absolute limit is access.SESSION_LIFE_S
CSRF_COOKIE_NAME = f"gantry_csrf_{APPLIANCE.http_port}"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True  # htmx sends the token from the page (hx-headers), not from the cookie
SIGN_IN_COOKIE_NAME = f"gantry_sign_in_{APPLIANCE.http_port}"  # see views/accounts/provider
KNOWN_BROWSER_COOKIE_NAME = f"gantry_known_{APPLIANCE.http_port}"  # see known_browsers
CSRF_FAILURE_VIEW = "dashboard.http.error_pages.csrf_failure"

CHANNEL_LAYERS = {"default": channel_layer(APPLIANCE, SECRET_KEY)}

STATIC_URL = "/static/"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "dashboard.web.static_files.HashedStaticStorage"},
}

MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"  # async views have no blocking session
# dashboard/web has limited every body before: all of it fits into memory, and nothing goes into temporary files.
DATA_UPLOAD_MAX_MEMORY_SIZE = APPLIANCE.http_body_bytes_max
FILE_UPLOAD_MAX_MEMORY_SIZE = APPLIANCE.http_body_bytes_max
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
SECURE_CONTENT_TYPE_NOSNIFF = True

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LANGUAGE_COOKIE_NAME = "gantry_language"
LOCALE_PATHS = [compile_catalogs(APPLIANCE.dashboard_folder / "locale")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# The command `up` configures logging; Django must not add its own handlers.
LOGGING_CONFIG = None
