"""accounts, for threads.

Written from gantrymq.client.admin.accounts, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gantrymq.client.admin.accounts import Account, AccountAdmin, AccountList, AccountsVersion
from gantrymq.client.blocking.base import BlockingPart


class SyncAccountAdmin(BlockingPart[AccountAdmin]):
    """`admin.accounts`. Calls that end in _at speak to one broker, the others to several, one after the other."""

    def all_at(self, address: str) -> AccountList:
        """The accounts this broker knows."""
        return self._run(self._part().all_at(address))

    def version_at(self, address: str) -> AccountsVersion:
        """Which state of its accounts this broker has."""
        return self._run(self._part().version_at(address))

    def set_at(self, address: str, account: Account, *, secret_key: str | None = None) -> None:
        """Make the account at this broker, or change it: what is None stays as it is there; `admin` and lists of
        permissions are replaced. A new account needs a secret key; both keys take 7 characters.
        RocketMQ's own brokers want the secret with each change.

        ResponseError says what the broker did not like, without the secret.
        """
        self._run(self._part().set_at(address, account, secret_key=secret_key))

    def delete_at(self, address: str, access_key: str) -> None:
        """Delete the account at this broker. Nothing happens when it is not there (any more)."""
        self._run(self._part().delete_at(address, access_key))

    def set_white_addresses_at(self, address: str, patterns: Sequence[str], *, file: str = "") -> None:
        """Replace the addresses that need no account, in one of the broker's files (default: plain_acl.yml)."""
        self._run(self._part().set_white_addresses_at(address, patterns, file=file))

    def set(
        self, accounts: Mapping[str, Account], masters: Mapping[str, str], *, secret_key: str | None = None
    ) -> list[str]:
        """set_at with what each broker (by name) is to have. PartlyDone when some could not."""
        return self._run(self._part().set(accounts, masters, secret_key=secret_key))

    def delete(self, access_key: str, masters: Mapping[str, str]) -> list[str]:
        """delete_at at each broker. PartlyDone when some could not."""
        return self._run(self._part().delete(access_key, masters))

    def set_white_addresses(
        self, patterns: Mapping[str, Sequence[str]], masters: Mapping[str, str], *, file: str = ""
    ) -> list[str]:
        """set_white_addresses_at with what each broker (by name) is to have. PartlyDone when some could not."""
        return self._run(self._part().set_white_addresses(patterns, masters, file=file))
