"""Which database Django is given: SQLite in the data folder, or the PostgreSQL that `database_url` names.

libpq's own reader takes the address apart, so all that its documentation knows may stand in it: several hosts,
`sslmode=verify-full&sslrootcert=…`, `passfile=…`, `service=…`.
"""

from __future__ import annotations

from typing import Any

from appliance.own_files import how_to_add
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.errors import ConfigError

CONNECTIONS_MAX = 16  # of the web process; each request has one while it asks
WAIT_S = 5  # for a connection, a lock; then a page says so
SERVER_DEFAULTS = {  # the address may say otherwise
    "application_name": "gantrymq",
    "connect_timeout": str(WAIT_S),
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",  # ms; a network that is gone must not hold a thread for a quarter of an hour
    "options": f"-c lock_timeout={WAIT_S}s -c statement_timeout=60s -c idle_in_transaction_session_timeout=60s",
}


def databases(config: ApplianceConfig) -> dict[str, dict[str, Any]]:
    """Django's DATABASES. Raises ConfigError, which shows no password."""
    return {"default": _server(config.database_url) if config.database_url else _file(config)}


def _file(config: ApplianceConfig) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": config.dashboard_folder / "db.sqlite3",
        "OPTIONS": {
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "transaction_mode": "IMMEDIATE",
            "timeout": WAIT_S,
        },
        "TEST": {"NAME": config.dashboard_folder / "test.sqlite3"},  # a file, as in life: threads share it
    }


def _server(url: str) -> dict[str, Any]:
    parts = server_parts(url)
    _take_texts_with_nul()
    fields = (("NAME", "dbname"), ("USER", "user"), ("PASSWORD", "password"), ("HOST", "host"), ("PORT", "port"))
    named = {key: parts.pop(part, "") for key, part in fields}
    pool = {"min_size": 1, "max_size": CONNECTIONS_MAX, "timeout": float(WAIT_S)}
    return {
        "ENGINE": "django.db.backends.postgresql",
        **named,
        "CONN_HEALTH_CHECKS": True,  # the pool hands out no connection that a restart of the server has broken
        "OPTIONS": parts | {"pool": pool},
    }


def server_parts(url: str) -> dict[str, str]:
    """libpq's parameters, with our defaults. Raises ConfigError."""
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as exc:
        raise ConfigError(f"database_url needs psycopg: {how_to_add('postgresql')}") from exc
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except ProgrammingError:  # its words may hold a part of the password
        raise ConfigError(
            "database_url can't be read: use postgresql://user:password@host:5432/name, with what is no letter or "
            "digit in the password written as %XX"
        ) from None
    if not parts.get("dbname") and not parts.get("service"):
        raise ConfigError("database_url names no database: use postgresql://user:password@host:5432/name")
    return SERVER_DEFAULTS | parts


def _take_texts_with_nul() -> None:
    """PostgreSQL's texts have no character 0, which anyone can put into an address or a message's property.

    It becomes the replacement character, in what is stored and in what is looked for.
    """
    from psycopg import adapters
    from psycopg.types.string import StrDumperUnknown

    class TextDumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "\ufffd"))

    adapters.register_dumper(str, TextDumper)
