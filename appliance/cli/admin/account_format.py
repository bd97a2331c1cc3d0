"""How `gantry admin accounts` writes accounts, reads permissions, and gets a secret without the command line."""

from __future__ import annotations

import argparse
import getpass
import secrets
import sys

from appliance.cli.asking import asking
from appliance.cli.tables import Cell
from gantrymq.client.admin.accounts import Account
from gantrymq.errors import ConfigError
from gantrymq.remoting.signature import KEY_CHARS_MIN

MADE_UP_BYTES = 24
PERMISSIONS = {"DENY": "DENY", "PUB": "PUB", "SUB": "SUB", "PUB|SUB": "PUB|SUB", "SUB|PUB": "PUB|SUB"}
AS_OTHERS = "DEFAULT"
COLUMNS = ("admin", "topics", "other topics", "groups", "other groups", "unsigned from")


def cells(account: Account) -> list[Cell]:
    """What an account may, in the order of COLUMNS."""
    everything = account.admin and not account.topic_perms and not account.group_perms
    return [
        account.admin,
        " ".join(account.topic_perms or ()) or None,
        "all" if everything else account.default_topic_perm or "DENY",
        " ".join(account.group_perms or ()) or None,
        "all" if everything else account.default_group_perm or "DENY",
        account.white_remote_address or None,
    ]


def parse_permission(text: str) -> tuple[str, str | None]:
    """NAME=PERM: a name and its permission, None for "as others"."""
    name, separator, value = (part.strip() for part in text.partition("="))
    word = value.upper().replace("+", "|")
    if not separator or not name or "," in name or (word not in PERMISSIONS and word != AS_OTHERS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=PERM, such as orders=PUB+SUB; PERM is DENY, PUB, SUB, PUB+SUB or default"
        )
    return name, PERMISSIONS.get(word)


def parse_default(text: str) -> str:
    word = text.strip().upper().replace("+", "|")
    if word not in PERMISSIONS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a permission: use DENY, PUB, SUB or PUB+SUB")
    return PERMISSIONS[word]


def parse_word(text: str) -> str:
    """A key or pattern: neither empty nor with spaces or commas, which end it on the wire."""
    if not text or "," in text or any(each.isspace() for each in text):
        raise argparse.ArgumentTypeError(f"{text!r}: one word without commas, such as shop-app or 10.1.2.*")
    return text


def parse_secret_source(text: str) -> str:
    """ask, stdin or generate. What else was typed is not repeated: it may be the secret."""
    if text not in ("ask", "stdin", "generate"):
        raise argparse.ArgumentTypeError(
            "say ask, stdin or generate; a secret on the command line is read by ps and kept by the shell"
        )
    return text


def secret_for(access_key: str, source: str | None, *, is_new: bool) -> tuple[str | None, bool]:
    """The secret that an account is to have, and whether it was made up; None: it keeps the one it has.

    Raises ConfigError when no person can answer, or the secret is too short.
    """
    if len(access_key) < KEY_CHARS_MIN and is_new:
        raise ConfigError(f"access key {access_key}: use {KEY_CHARS_MIN} characters or more, such as shop-app")
    if source is None and not is_new:
        return None, False
    if source is None and not sys.stdin.isatty():
        raise ConfigError(
            f"{access_key} is new and needs a secret: --secret generate makes one up and shows it, --secret stdin "
            "reads a line from standard input"
        )
    if source == "generate":
        return secrets.token_urlsafe(MADE_UP_BYTES), True
    if source == "stdin":
        return _long_enough(sys.stdin.readline().rstrip("\r\n")), False
    return _asked(access_key)


def _asked(access_key: str) -> tuple[str, bool]:
    try:
        with asking():
            secret = getpass.getpass(f"Secret key of {access_key} (empty: make one up): ")
            again = getpass.getpass("Again: ") if secret else ""
    except EOFError:
        raise ConfigError("no secret was typed: nothing was changed") from None
    if not secret:
        return secrets.token_urlsafe(MADE_UP_BYTES), True
    if again != secret:
        raise ConfigError("the two secrets differ: nothing was changed")
    return _long_enough(secret), False


def _long_enough(secret: str) -> str:
    if len(secret) < KEY_CHARS_MIN:
        raise ConfigError(f"the secret key has {len(secret)} characters: use {KEY_CHARS_MIN} or more")
    return secret
