"""Admin calls about accounts (RocketMQ's ACL, requests 50 to 54). What comes from brokers never holds a secret.

Brokers of one machine may share their files, so the same change goes to one broker after the other, and a broker that
has it already has done its part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gantrymq.client.admin.calls import AdminCalls, read_properties
from gantrymq.errors import BodyError, ConfigError, GantryError, PartlyDone, ResponseError
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import DataVersion
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.json_body import Body, json_field, list_of

HIDDEN = "***"  # in a secret's place
NO_ACCESS_CONTROL = "has no access control: set aclEnable=true"
SECRET_WANTED = "this broker wants the account's secret with each change (RocketMQ 4.9): give it again"


def _texts(items: Any) -> list[str]:
    if not isinstance(items, list):
        raise BodyError("Account: permissions are no list")
    return [str(item) for item in items]


@dataclass
class Account(Body):
    """An account as brokers tell it. Permissions: DENY, PUB, SUB, PUB|SUB; topic_perms and group_perms hold
    "name=permission"; white_remote_address: addresses that need no signature when they name this account."""

    access_key: str = ""
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: list[str] | None = json_field(read=_texts, default=None)
    group_perms: list[str] | None = json_field(read=_texts, default=None)
    white_remote_address: str | None = None


@dataclass
class AccountList(Body):
    """Body of 54: accounts, and the addresses that need none."""

    accounts: list[Account] = json_field(name="plainAccessConfigs", read=list_of(Account), default=list)
    white_addresses: list[str] = json_field(name="globalWhiteAddrs", default=list)


@dataclass(slots=True)
class AccountsVersion:
    """Answer of 52: which state of its accounts a broker has; files: path to version."""

    broker_name: str
    address: str
    cluster: str
    version: DataVersion
    files: dict[str, DataVersion]


class AccountAdmin:
    """`admin.accounts`. Calls that end in _at speak to one broker, the others to several, one after the other."""

    def __init__(self, calls: AdminCalls) -> None:
        self._calls = calls

    async def all_at(self, address: str) -> AccountList:
        """The accounts this broker knows. ConfigError when it has no access control."""
        found = AccountList.from_json((await self._told(address, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG)).body)
        found.white_addresses = [each for each in found.white_addresses if each]  # RocketMQ's empty list holds a ""
        return found

    async def version_at(self, address: str) -> AccountsVersion:
        """Which state of its accounts this broker has. ConfigError when it has no access control."""
        fields = (await self._told(address, RequestCode.GET_BROKER_CLUSTER_ACL_INFO)).ext_fields
        files = fastjson.loads(fields["allAclFileVersion"].encode()) if fields.get("allAclFileVersion") else {}
        return AccountsVersion(
            fields.get("brokerName", ""),
            fields.get("brokerAddr", address),
            fields.get("clusterName", ""),
            DataVersion.from_json(fields.get("version", "{}").encode()),
            {path: DataVersion.from_dict(version) for path, version in files.items()},
        )

    async def _told(self, address: str, code: RequestCode) -> RemotingCommand:
        """The answer to 52 or 54, which RocketMQ's brokers without access control never give."""
        config = read_properties((await self._calls.call(address, RequestCode.GET_BROKER_CONFIG)).body)
        if config.get("aclEnable") == "false":
            raise ConfigError(f"broker {address} {NO_ACCESS_CONTROL}")
        return await self._calls.call(address, code)

    async def set_at(self, address: str, account: Account, *, secret_key: str | None = None) -> None:
        """Make the account at this broker, or change it: what is None stays as it is there; `admin` and lists of
        permissions are replaced. A new account needs a secret key; both keys take 7 characters.
        RocketMQ's own brokers want the secret with each change.

        ResponseError says what the broker did not like, without the secret.
        """
        fields = {"accessKey": account.access_key, "admin": "true" if account.admin else "false"}
        optional = {
            "secretKey": secret_key,
            "whiteRemoteAddress": account.white_remote_address,
            "defaultTopicPerm": account.default_topic_perm,
            "defaultGroupPerm": account.default_group_perm,
            "topicPerms": None if account.topic_perms is None else ",".join(account.topic_perms),
            "groupPerms": None if account.group_perms is None else ",".join(account.group_perms),
        }
        fields |= {name: value for name, value in optional.items() if value is not None}
        try:
            await self._calls.call(address, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)
        except ResponseError as exc:  # RocketMQ's brokers quote what they refuse
            if secret_key is None and "secretKey=null" in (exc.remark or ""):
                raise _told_anew(exc, SECRET_WANTED) from None
            remark = exc.remark.replace(secret_key, HIDDEN) if exc.remark and secret_key else exc.remark
            raise _told_anew(exc, remark) from None

    async def delete_at(self, address: str, access_key: str) -> None:
        """Delete the account at this broker. Nothing happens when it is not there (any more)."""
        try:
            await self._calls.call(address, RequestCode.DELETE_ACL_CONFIG, {"accessKey": access_key})
        except ResponseError as exc:
            if exc.code != ResponseCode.DELETE_ACL_CONFIG_FAILED:
                raise
            if any(account.access_key == access_key for account in (await self.all_at(address)).accounts):
                raise

    async def set_white_addresses_at(self, address: str, patterns: Sequence[str], *, file: str = "") -> None:
        """Replace the addresses that need no account, in one of the broker's files (default: plain_acl.yml)."""
        fields = {"globalWhiteAddrs": ",".join(patterns), "aclFileFullPath": file}
        await self._calls.call(address, RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, fields)

    # -- at several brokers, one after the other; masters: addresses by broker name -----------------------------------

    async def set(
        self, accounts: Mapping[str, Account], masters: Mapping[str, str], *, secret_key: str | None = None
    ) -> list[str]:
        """set_at with what each broker (by name) is to have. PartlyDone when some could not."""
        return await _in_turn(accounts, lambda name: self.set_at(masters[name], accounts[name], secret_key=secret_key))

    async def delete(self, access_key: str, masters: Mapping[str, str]) -> list[str]:
        """delete_at at each broker. PartlyDone when some could not."""
        return await _in_turn(masters, lambda name: self.delete_at(masters[name], access_key))

    async def set_white_addresses(
        self, patterns: Mapping[str, Sequence[str]], masters: Mapping[str, str], *, file: str = ""
    ) -> list[str]:
        """set_white_addresses_at with what each broker (by name) is to have. PartlyDone when some could not."""
        return await _in_turn(
            patterns, lambda name: self.set_white_addresses_at(masters[name], patterns[name], file=file)
        )


async def _in_turn(names: Iterable[str], act: Callable[[str], Awaitable[None]]) -> list[str]:
    """The names in turn. PartlyDone when some failed."""
    done: list[str] = []
    failures: dict[str, GantryError] = {}
    for name in names:
        try:
            await act(name)
            done.append(name)
        except GantryError as exc:
            failures[name] = exc
    if failures:
        raise PartlyDone(done, failures)
    return done


def with_permissions(entries: Sequence[str] | None, changes: Mapping[str, str | None]) -> list[str] | None:
    """ "name=permission" entries after changes; None takes a name's entry away. None where there are none to change."""
    if not entries and not any(changes.values()):
        return None
    known = {entry.partition("=")[0].strip(): entry.partition("=")[2].strip() for entry in entries or ()}
    for name, permission in changes.items():
        if permission is None:
            known.pop(name, None)
        else:
            known[name] = permission
    return [f"{name}={permission}" for name, permission in known.items()]


def _told_anew(refusal: ResponseError, remark: str | None) -> ResponseError:
    """The same refusal with another remark."""
    return ResponseError(
        refusal.code,
        remark,
        address=refusal.address,
        role=refusal.role,
        request=refusal.request,
        name=refusal.name,
        hint=refusal.hint,
    )
