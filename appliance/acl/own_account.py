"""The appliance's own account, with which its dashboard and its brokers sign.

    HOME/appliance.yml               access key and secret key, for the appliance's processes
    HOME/conf/acl/appliance.yml      the same account, for brokers and name server to verify signatures
    HOME/conf/plain_acl.yml          the users' accounts; created once, with examples, and not changed afterwards

The files are created at the first start, readable by their owner only; the secret is random, and never printed or
logged. The account may do everything, requests can't change it, and its requests can't be replayed. For a new secret,
delete appliance.yml and start again.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from appliance.acl.account_book import DEFAULT_FILE, FOLDER
from appliance.acl.account_file import read_document, write_document
from appliance.settings.replaced_file import replace_file
from gantrymq.errors import ConfigError
from gantrymq.remoting.signature import Credentials

ACCESS_KEY = "gantry-appliance"
SECRET_BYTES = 32

TEMPLATE = """\
# Accounts of clients, in RocketMQ's own format. Changes count within a second, without a restart.
# Clients sign with accessKey and secretKey (both 7 characters or more). admin: true may do everything.
# Permissions: DENY, PUB, SUB, PUB|SUB. The defaults hold for every topic and group that is not named.
#
# globalWhiteRemoteAddresses: [192.168.7.*]     # these need no account, except to administer
# accounts:
# - accessKey: orders-service
#   secretKey: choose-a-long-one
#   admin: false
#   defaultTopicPerm: DENY
#   defaultGroupPerm: SUB
#   topicPerms: [orders=PUB, "invoices=PUB|SUB"]
#   groupPerms: [invoice-printers=SUB]
accounts: []
"""


def ensure_own_account(home: Path) -> Credentials:
    """Create the missing ones of the three files, and return the account. Raises ConfigError or AccountFileError."""
    credentials_file = home / "appliance.yml"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.chmod(0o700)
        if not credentials_file.exists():
            replace_file(credentials_file, _lines(ACCESS_KEY, secrets.token_urlsafe(SECRET_BYTES)), is_private=True)
        if not (home / DEFAULT_FILE).exists():
            replace_file(home / DEFAULT_FILE, TEMPLATE, is_private=True)
    except OSError as exc:
        raise ConfigError(f"accounts can't be kept in {home}: {exc.strerror}") from exc
    credentials = Credentials.from_file(credentials_file)
    account = {
        "accessKey": credentials.access_key,
        "secretKey": credentials.secret_key,
        "admin": "true",
        "requireStamp": "true",
        "managedBy": "appliance",
    }
    path = home / FOLDER / "appliance.yml"
    if not path.exists() or read_document(path).get("accounts") != [account]:
        write_document(path, {"accounts": [account]})
    return credentials


def _lines(access_key: str, secret_key: str) -> str:
    return f"accessKey: {access_key}\nsecretKey: {secret_key}\n"
