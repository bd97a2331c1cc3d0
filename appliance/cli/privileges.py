"""`gantry up --user NAME`, started as root: become that account for good, before anything of ours is opened or written.

Without it root is refused: a flaw anywhere would be one of the whole machine. `--allow-root` is for where there is
nobody else, as in some containers.
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
            raise ConfigError(f"user={config.user}: only root can become another account; start as that one")
        return
    if account.pw_uid == 0:
        raise ConfigError(f"user={config.user} is root again: name an account without rights, or say --allow-root")
    _hand_over(config.data, account)
    os.initgroups(account.pw_name, account.pw_gid)
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)  # real, effective and saved: there is no way back
    os.environ.update(USER=account.pw_name, LOGNAME=account.pw_name, HOME=account.pw_dir)
    for path in needed:
        if not os.access(path, os.R_OK):
            raise ConfigError(f"user={config.user}: this account can't read {path}; put the checkout where it can")


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(f"user={name}: there is no such account; `useradd --system {name}` makes one") from None


def _hand_over(data: Path, account: pwd.struct_passwd) -> None:
    """A new data folder becomes the account's; one that holds somebody else's files stays as it is."""
    if not data.exists():
        data.mkdir(parents=True, mode=FOLDER_MODE)
        os.chown(data, account.pw_uid, account.pw_gid)
    elif data.stat().st_uid != account.pw_uid:
        raise ConfigError(
            f"user={account.pw_name}: {data} belongs to another account; give it away with "
            f"`chown -R {account.pw_name}: {data}`, or name another folder with --data"
        )
