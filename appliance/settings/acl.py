"""Settings of access control: where the accounts are, and how strictly requests are checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gantrymq.errors import ConfigError
from store.base.config import setting

STAMP_WINDOW_MS_MIN = 1000


@dataclass(frozen=True, kw_only=True)
class AclSettings:
    """Settings of name servers and brokers alike."""

    rocketmq_home: Path | None = setting(
        None, "rocketmqHome", "folder with conf/plain_acl.yml and conf/acl/; empty: $ROCKETMQ_HOME"
    )
    acl_file: Path = setting(
        Path("conf/plain_acl.yml"), "rocketmq.acl.plain.file", "accounts file, relative to rocketmqHome"
    )
    acl_require_stamp: bool = setting(
        False, "aclRequireStamp", "reject signed requests that can be replayed (all of Java clients can)"
    )
    acl_stamp_window_ms: int = setting(
        300_000, "aclStampWindowMs", "greatest age of a stamped request, ms; clocks may differ as much"
    )

    def check_acl(self) -> None:
        """Raise ConfigError for an invalid setting; called by __post_init__."""
        if self.acl_stamp_window_ms < STAMP_WINDOW_MS_MIN:
            raise ConfigError(
                f"aclStampWindowMs={self.acl_stamp_window_ms}: use at least {STAMP_WINDOW_MS_MIN}; requests take time"
            )

    def accounts_home(self) -> Path | None:
        """The folder of the accounts: rocketmqHome, else $ROCKETMQ_HOME, else None."""
        if self.rocketmq_home is not None:
            return self.rocketmq_home
        return Path(os.environ["ROCKETMQ_HOME"]) if os.environ.get("ROCKETMQ_HOME") else None
