"""Variables that begin as settings do and are none: each one that our programs or pages name, declared once.

One that is exported for `gantry admin` or for a line of curl must not be refused by another command as a setting
that is not known.
"""

from __future__ import annotations

ENVIRONMENT_PREFIX = "GANTRY_"  # of settings

CONFIG_VARIABLE = "GANTRY_CONFIG"  # the file of settings
SECRET_VARIABLE = "GANTRY_OIDC_CLIENT_SECRET"  # of the client at an OpenID provider
NAMESRV_VARIABLE = "GANTRY_NAMESRV"  # what `gantry admin` connects to
DASHBOARD_VARIABLE = "GANTRY_DASHBOARD"  # the dashboard that it asks,
TOKEN_VARIABLE = "GANTRY_TOKEN"  # and with which token; lines of curl use it, too,
URL_VARIABLE = "GANTRY_URL"  # and this one
PARENT_VARIABLE = "GANTRY_PARENT_PID"  # the process with which a child ends
GUARDIAN_VARIABLE = "GANTRY_GUARDIAN_FD"  # the web process's end of the guardian's socket pair
UNPACK_VARIABLE = "GANTRY_UNPACK"  # where the single file unpacks: deploy/binary/launcher reads it

RESERVED_VARIABLES = (
    CONFIG_VARIABLE,
    SECRET_VARIABLE,
    NAMESRV_VARIABLE,
    DASHBOARD_VARIABLE,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    PARENT_VARIABLE,
    GUARDIAN_VARIABLE,
    UNPACK_VARIABLE,
)
RESERVED_PREFIXES = ("GANTRY_TEST_", "GANTRY_BENCH_")  # switches of tests and benchmarks


def is_setting_variable(name: str) -> bool:
    """Whether a variable is meant as a setting, known or not."""
    return (
        name.startswith(ENVIRONMENT_PREFIX)
        and name not in RESERVED_VARIABLES
        and not name.startswith(RESERVED_PREFIXES)
    )
