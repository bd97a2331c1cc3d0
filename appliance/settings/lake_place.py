"""Where the reports' lake is, or backups are: a folder, or the URI of an object store or HDFS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from gantrymq.errors import ConfigError

SCHEMES = ("s3", "s3a", "hdfs")
TABLES = "delta"  # the folder below a place
S3_OPTIONS = ("endpoint_override", "region", "scheme", "tls_ca_file_path")
HOW = "write a folder, s3://BUCKET/PREFIX, or hdfs://HOST:PORT/FOLDER"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A place that is no folder. address: without options; options: `region=eu-west-1&endpoint_override=HOST:PORT`."""

    address: str
    options: str = ""

    @property
    def scheme(self) -> str:
        return self.address.partition(":")[0]


def place_of(text: str, setting: str = "report_lake") -> Path | StoreAddress | None:
    """The place that is meant; None: the data folder. Raises ConfigError, which repeats no password.

    setting: what errors call it.
    """
    if not text:
        return None
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        path = Path(text).expanduser()
        if not path.is_absolute():
            raise ConfigError(f"{setting}={text}: the folder's path must be absolute, as Spark's executors see it")
        return path
    parts = urlsplit(text)
    if parts.username or parts.password or "@" in parts.netloc:
        raise ConfigError(
            f"{setting}: no keys in the address, which is shown in logs; they come from the environment "
            "(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or from a file (AWS_SHARED_CREDENTIALS_FILE)"
        )
    if parts.scheme == "file":
        return Path(parts.path)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.fragment:
        raise ConfigError(f"{setting}={parts.scheme}://{parts.netloc}{parts.path}: {HOW}")
    options = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if wrong := [name for name in options if name not in S3_OPTIONS or parts.scheme == "hdfs"]:
        raise ConfigError(f"{setting}: {wrong[0]!r} is not an option of it; with S3 there are {', '.join(S3_OPTIONS)}")
    scheme = "hdfs" if parts.scheme == "hdfs" else "s3"
    return StoreAddress(f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}", parts.query)
