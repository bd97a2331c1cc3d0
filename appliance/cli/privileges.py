"""`gantry up --user NAME`, started as root: switch to that account permanently, before any file is opened or written.

Without it root is refused, because a flaw would endanger the whole machine. `--allow-root` is for machines without
another account, such as some containers.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Sequence
from pathlib import Path

from appliance.process.data_folder import FOLDER_MODE
from appliance.settings.appliance_config import ROOT, ApplianceConfig
from gantrymq.errors import ConfigError

NEEDED = (Path(sys.executable), ROOT / "manage.py")  # what the account must be able to read


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
                f"user={config.user}: this account can't read {path}; move the checkout to a folder that it can read"
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
            f"`chown -R {account.pw_name}: {data}`, or name another folder with --data"
        )
