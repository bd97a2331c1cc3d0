"""`gantry up --user NAME`, started as root: switch to that account permanently, before any file is opened or written.

Without it root is refused, because a flaw would endanger the whole machine. `--allow-root` is for machines without
another account, such as some containers.

`python -m appliance.cli.privileges OPTIONS`, with those of `gantry up`, only says whether root is refused. deploy/up
asks before it spends minutes on installing, with a Python that has no packages: this module and what it imports need
none.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from appliance.cli.checks.root import ROOT_REFUSED, is_root_refused
from appliance.own_files import ROOT
from appliance.process.data_folder import FOLDER_MODE
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.errors import ConfigError

NEEDED = (Path(sys.executable), ROOT / "appliance" / "__main__.py")  # what the account must be able to read
HELP = {"-h", "--help"}


def drop_privileges(config: ApplianceConfig, needed: Sequence[Path] = NEEDED) -> None:
    """Become `config.user`, when one is named. Raises ConfigError."""
    if not config.user:
        return
    account = _account(config.user)
    if os.geteuid() != 0:
        if account.pw_uid != os.geteuid():
            raise ConfigError(f"user={config.user}: only root can switch accounts; start gantry as that account")
        return
    if account.pw_uid == 0:
        raise ConfigError(f"user={config.user} is root: name an unprivileged account, or use --allow-root")
    _hand_over(config.data, account)
    os.initgroups(account.pw_name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)  # real, effective and saved: there is no way back
    os.environ.update(USER=account.pw_name, LOGNAME=account.pw_name, HOME=account.pw_dir)
    for path in needed:
        if not os.access(path, os.R_OK):
            raise ConfigError(
                f"user={config.user}: this account can't read {path}; install GantryMQ in a folder that it can read"
            )


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(f"user={name}: there is no such account; create it with `useradd --system {name}`") from None


def _hand_over(data: Path, account: pwd.struct_passwd) -> None:
    """Create a missing data folder for the account; refuse an existing one of another account."""
    if not data.exists():
        data.mkdir(parents=True, mode=FOLDER_MODE)
        os.chown(data, account.pw_uid, account.pw_gid)
    elif data.stat().st_uid != account.pw_uid:
        raise ConfigError(
            f"user={account.pw_name}: {data} belongs to another account; change that with "
            f"`chown -R {account.pw_name}: {shlex.quote(str(data))}`, or name another folder with --data"
        )


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 when `gantry up` with these options would refuse root; mistakes in them are for it to tell."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--user")
    parser.add_argument("--allow-root", action="store_true", default=None)
    given, others = parser.parse_known_args(arguments)
    try:
        settings = {"user": given.user, "allow_root": given.allow_root}
        config = ApplianceConfig.load(settings, config_file=given.config)
    except ConfigError:
        return 0
    if HELP.intersection(others) or not is_root_refused(config):
        return 0
    print(f"✗ {ROOT_REFUSED}\nNothing was installed.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
