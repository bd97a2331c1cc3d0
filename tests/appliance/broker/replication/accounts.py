"""Settings of a master whose slaves need an account, and the files of two accounts beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ACCOUNTS = """\
accounts:
- {accessKey: administrator, secretKey: a-long-secret-of-ours, admin: true}
- {accessKey: application, secretKey: another-long-secret, admin: false, defaultTopicPerm: PUB|SUB}
"""


def with_accounts(folder: Path) -> dict[str, Any]:
    (folder / "conf").mkdir()
    (folder / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    for name, secret in (("administrator", "a-long-secret-of-ours"), ("application", "another-long-secret")):
        (folder / f"{name}.yml").write_text(f"accessKey: {name}\nsecretKey: {secret}\n")
    return {
        "acl_enable": True,
        "rocketmq_home": folder,
        "ha_accounts": True,
        "credentials_file": folder / "administrator.yml",
    }
