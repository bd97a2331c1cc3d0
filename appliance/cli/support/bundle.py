"""Collect what support needs to help: versions, settings, checks, figures, stores, processes, logs.

  gantry support-bundle                       gantrymq-support-TIME.tar.gz in the working folder
  gantry support-bundle --output FILE.tar.gz --data DIR --log-lines 5000

It has no messages and no secrets: passwords, keys, tokens and the addresses of webhooks are replaced by "(removed)",
and a file that still had one is left out. Names of topics, groups, hosts and users stay. Look at it before you send
it. Run the command as the owner of the data folder; the appliance may run, or not.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tarfile
import time
from pathlib import Path

from appliance.cli.support.parts import Part, parts
from appliance.cli.support.secrets import Secrets
from appliance.settings.appliance_config import ApplianceConfig, describe
from gantrymq.byte_size import readable
from gantrymq.errors import ConfigError, GantryError

LOG_LINES = 2000
FILE_MODE = 0o600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="DIR", help=describe("data"))
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file (default: gantry.toml, if there)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: gantrymq-support-TIME.tar.gz")
    parser.add_argument(
        "--log-lines", type=int, default=LOG_LINES, metavar="N", help=f"last lines of each log (default: {LOG_LINES})"
    )


def run(arguments: argparse.Namespace) -> int:
    config = ApplianceConfig.load({"data": arguments.data}, config_file=arguments.config)
    if not config.data.is_dir():
        raise ConfigError(f"{config.data} is not there: name the data folder with --data")
    name = time.strftime("gantrymq-support-%Y%m%dT%H%M%SZ", time.gmtime())
    output = arguments.output or Path(f"{name}.tar.gz")
    secrets = Secrets(config, os.environ)
    try:
        with open(output, "xb", opener=_private) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for inside, make in parts(config, arguments.log_lines):
                _add(archive, f"{name}/{inside}", gathered(make, secrets))
    except FileExistsError as exc:
        raise ConfigError(f"{output} is there already: name another file with --output") from exc
    except OSError as exc:
        raise ConfigError(f"{output} can't be written ({exc.strerror}): name another file with --output") from exc
    print(f"{output}: {readable(output.stat().st_size)}, without messages and secrets; look at it before you send it")
    return 0


def gathered(make: Part, secrets: Secrets) -> str:
    """The text of a part without secrets; of one that fails the reason, of one that can't be freed of them nothing."""
    try:
        text = make()
    except (GantryError, OSError, ValueError, RuntimeError) as exc:
        print(f"gantry support-bundle: a part is missing: {exc}", file=sys.stderr)
        text = f"not gathered: {type(exc).__name__}: {exc}\n"
    text = secrets.without(text)
    if any(value in text for value in secrets.texts):
        return "left out: it had a secret that could not be removed\n"
    return text


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    content = text.encode(errors="replace")
    item = tarfile.TarInfo(name)
    item.size, item.mode, item.mtime = len(content), FILE_MODE, int(time.time())
    archive.addfile(item, io.BytesIO(content))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
