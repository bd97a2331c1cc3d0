"""`gantry admin accounts` against brokers that ask for accounts and share their files, as those of an appliance do."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from appliance.settings.roles import BrokerConfig
from gantrymq import AdminClient, Credentials
from gantrymq.client.admin.accounts import Account
from gantrymq.errors import PartlyDone, ResponseError
from store.base.config import MessageStoreConfig
from tests.appliance.acl.cluster import ADMIN, guarded
from tests.appliance.cli.running_gantry import Ran, run_gantry
from tests.gantrymq.client.ports import closed_port
from tests.harness import SMALL_STORE, ServingCluster
from tests.interop.accounts import accounts_at, launched
from tests.peers.fixtures import make_apache_peer

Accounts = Callable[..., Awaitable[Ran]]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ServingCluster]:
    """Two brokers with the same files of accounts."""
    async with guarded(tmp_path, broker_name="first", credentials_file=_credentials(tmp_path)) as running:
        config = BrokerConfig(
            listen_port=0, namesrv_addresses=running.namesrv_address, broker_name="second", acl_enable=True,
            rocketmq_home=tmp_path, credentials_file=_credentials(tmp_path),
        )  # fmt: skip
        async with BrokerController(config, MessageStoreConfig(root=tmp_path / "second", **SMALL_STORE)) as second:
            await second.outer_api.register_all()
            yield running


def _credentials(folder: Path) -> Path:
    path = folder / "admin.yml"
    path.write_text(f"accessKey: {ADMIN.access_key}\nsecretKey: {ADMIN.secret_key}\n")
    return path


@pytest.fixture
def accounts(
    cluster: ServingCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Accounts:
    """Run `gantry admin accounts …` as the administrator; nothing on standard input, or `typed`."""
    monkeypatch.setenv("GANTRYMQ_CREDENTIALS", str(tmp_path / "admin.yml"))

    async def run(*words: str, typed: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        return await asyncio.to_thread(run_gantry, capsys, "admin", "-n", cluster.namesrv_address, "accounts", *words)

    return run


async def _is_let_in(cluster: ServingCluster, credentials: Credentials) -> bool:
    async with AdminClient(cluster.namesrv_address, credentials=credentials) as admin:
        with contextlib.suppress(ResponseError):
            await admin.topics.configs_at(cluster.broker_address)
            return True
    return False


async def test_an_account_is_made_changed_and_deleted_at_every_broker(
    cluster: ServingCluster, accounts: Accounts, tmp_path: Path
) -> None:
    planned = await accounts("set", "shop-app", "--topic", "orders=PUB+SUB", "--secret", "generate", "--dry-run")
    assert (planned.code, "secret" in planned.out) == (0, False)
    assert (await accounts("show", "shop-app")).code == 1
    made = await accounts("create", "shop-app", "--admin", "--secret", "generate", "--json")
    secret = made.json["secretKey"]
    assert (made.code, sorted(made.json["brokers"]), len(secret) >= 24) == (0, ["first", "second"], True)
    assert await _is_let_in(cluster, Credentials("shop-app", secret))

    changed = await accounts("set", "shop-app", "--no-admin", "--topic", "orders=pub+sub", "--topic", "prices=SUB",
                             "--group", "readers=SUB", "--default-group", "DENY")  # fmt: skip
    assert changed.code == 0
    assert (await accounts("set", "shop-app", "--topic", "prices=default", "--white-address", "10.1.2.*")).code == 0
    shown = (await accounts("show", "shop-app", "--json")).json["brokers"]
    assert shown["first"] == shown["second"] == {
        "accessKey": "shop-app", "admin": False, "defaultGroupPerm": "DENY", "topicPerms": ["orders=PUB|SUB"],
        "groupPerms": ["readers=SUB"], "whiteRemoteAddress": "10.1.2.*",
    }  # fmt: skip
    row = next(row for row in (await accounts("list")).rows if row and row[0] == "shop-app")
    assert row[-2:] == ["first,", "second"]

    assert (await accounts("delete", "shop-app")).code == 2
    deleted = await accounts("remove", "shop-app", "--yes")
    assert (deleted.code, deleted.out) == (0, "shop-app deleted at first, second\n")
    assert (await accounts("delete", "shop-app", "--yes")).code == 1
    assert not await _is_let_in(cluster, Credentials("shop-app", secret))


async def test_a_secret_is_typed_read_or_made_up_and_never_shown_again(
    cluster: ServingCluster, accounts: Accounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = await accounts("set", "shop-app", "--admin")
    assert (nobody.code, "--secret generate" in nobody.err) == (2, True)
    typed = await accounts("set", "shop-app", "--admin", "--secret", "stdin", typed="first-secret-1\n")
    assert (typed.code, "first-secret-1" in typed.out + typed.err) == (0, False)
    assert await _is_let_in(cluster, Credentials("shop-app", "first-secret-1"))
    assert (await accounts("set", "shop-app", "--default-topic", "SUB")).code == 0  # the secret stays
    assert await _is_let_in(cluster, Credentials("shop-app", "first-secret-1"))

    answers = iter(["asked-secret-1", "asked-secret-1", "one-of-them", "another", ""])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(answers))
    asked = await accounts("set", "shop-app", "--secret", "ask")
    assert (asked.code, "asked-secret-1" in asked.out + asked.err) == (0, False)
    assert await _is_let_in(cluster, Credentials("shop-app", "asked-secret-1"))
    assert not await _is_let_in(cluster, Credentials("shop-app", "first-secret-1"))
    assert "differ" in (await accounts("set", "shop-app", "--secret", "ask")).err
    made_up = await accounts("set", "shop-app", "--secret", "ask")
    assert "The secret is shown this once." in made_up.out

    short = await accounts("set", "shop-app", "--secret", "stdin", typed="abc\n")
    assert (short.code, "abc" in short.err) == (2, False)
    in_argv = await accounts("set", "shop-app", "--secret", "hunter2-hunter2")
    assert (in_argv.code, "hunter2" in in_argv.out + in_argv.err) == (2, False)
    listed = await accounts("list", "--json")
    for text in (listed.out, (await accounts("show", "rightKey1", "--json")).out, (await accounts("list")).out):
        assert not any(word in text for word in ("secret", "rightSecret1", "asked-secret-1"))


async def test_addresses_that_need_no_account_are_listed_and_changed(accounts: Accounts, tmp_path: Path) -> None:
    def before_and_after(ran: Ran) -> list[str]:
        return [" ".join(row[2:]) for row in ran.rows if row and row[0] == "first"]

    assert before_and_after(await accounts("white-list", "--add", "10.7.7.*", "--dry-run")) == [
        "10.9.9.*", "10.9.9.*, 10.7.7.*",
    ]  # fmt: skip
    assert (await accounts("white-list", "--add", "10.7.7.*")).code == 2
    assert (await accounts("white-list", "--add", "10.7.7.*", "--yes")).code == 0
    removed = await accounts("white-list", "--remove", "10.9.9.*", "--yes")
    assert (removed.code, before_and_after(removed)) == (0, ["10.9.9.*, 10.7.7.*", "10.7.7.*"])
    assert (await accounts("white-list", "--remove", "10.9.9.*", "--yes")).code == 1
    assert (await accounts("white-list", "1.2.3.4", "5.6.7.8", "--yes")).code == 0
    assert (await accounts("list", "--json")).json["whiteAddresses"]["second"] == ["1.2.3.4", "5.6.7.8"]
    refused = await accounts("white-list", "1.2.3.400", "--yes")
    assert (refused.code, "'1.2.3.400' is not an IP address" in refused.err) == (1, True)
    assert (await accounts("white-list", "--clear", "--yes")).code == 0
    assert (await accounts("list", "--json")).json["whiteAddresses"] == {"first": [], "second": []}
    for wrong in ((), ("1.2.3.4", "--clear"), ("1.2.3.4", "--add", "1.2.3.5"), ("1.2.3.4,5.6.7.8",)):
        assert (await accounts("white-list", *wrong, "--yes")).code == 2, wrong


async def test_each_broker_tells_which_state_it_has(accounts: Accounts, tmp_path: Path) -> None:
    assert (await accounts("set", "shop-app", "--secret", "generate")).code == 0
    first, second = (await accounts("version", "--json")).json
    file = str(tmp_path / "conf" / "plain_acl.yml")
    assert (first["brokerName"], second["brokerName"]) == ("first", "second")
    assert first["files"][file]["counter"] == first["version"]["counter"] == 1
    assert ["first", file, "1"] in [row[:3] for row in (await accounts("version")).rows]


async def test_what_is_refused_is_said_in_a_sentence(accounts: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, hint in (
        (("set", "shop-app", "--topic", "orders"), "such as orders=PUB+SUB"),
        (("set", "shop-app", "--topic", "orders=READ"), "PERM is DENY"),
        (("set", "shop-app", "--default-topic", "all"), "use DENY, PUB, SUB or PUB+SUB"),
        (("set", "short", "--secret", "generate"), "7 characters or more"),
        (("set", "with space"), "one word"),
        (("set", "rightKey1"), "say what to change"),
        (("lst",), "did you mean list?"),
    ):
        ran = await accounts(*words)
        assert (ran.code, hint in ran.err) == (2, True), (words, ran)
    bad_pattern = await accounts("set", "rightKey1", "--white-address", "1.2.3.400")
    assert (bad_pattern.code, "whiteRemoteAddress" in bad_pattern.err) == (1, True)
    assert "could do nothing more" in (await accounts("delete", ADMIN.access_key, "--dry-run")).out
    monkeypatch.setenv("GANTRYMQ_CREDENTIALS", "")
    stranger = await accounts("list")
    assert (stranger.code, "refused: No accessKey is configured" in stranger.err) == (1, True)
    assert "GANTRYMQ_CREDENTIALS" in stranger.err


async def test_a_broker_that_is_away_does_not_hide_what_the_others_did(cluster: ServingCluster) -> None:
    async with AdminClient(cluster.namesrv_address, credentials=ADMIN, timeout_s=60) as admin:
        masters = await admin.cluster.masters() | {"zaway": closed_port()}
        account = Account("shop-app", topic_perms=["orders=PUB"])
        with pytest.raises(PartlyDone) as caught:
            await admin.accounts.set(dict.fromkeys(masters, account), masters, secret_key="long-enough-1")
        assert (caught.value.done, list(caught.value.failures)) == (["first", "second"], ["zaway"])
        with pytest.raises(ResponseError) as refused:
            await admin.accounts.set_at(masters["first"], Account("short"), secret_key="very-secret-1")
        assert "very-secret-1" not in str(refused.value)


def test_apaches_broker_keeps_accounts_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts_at(tmp_path)
    monkeypatch.setenv("GANTRYMQ_ACCESS_KEY", ADMIN.access_key)
    monkeypatch.setenv("GANTRYMQ_SECRET_KEY", ADMIN.secret_key)
    for peer in launched(make_apache_peer(tmp_path, broker_properties={"aclEnable": "true"})):

        def accounts(*words: str, typed: str = "", namesrv: str = peer.namesrv_address) -> Ran:
            monkeypatch.setattr("sys.stdin", io.StringIO(typed))
            return run_gantry(capsys, "admin", "accounts", *words, "-n", namesrv)

        secret = ("--secret", "stdin")
        assert accounts("set", "shop-app", "--topic", "orders=PUB+SUB", *secret, typed="long-enough-1\n").code == 0
        refused = accounts("set", "shop-app", "--topic", "prices=SUB")
        assert (refused.code, "give it again" in refused.err) == (1, True)
        assert accounts("set", "shop-app", "--topic", "prices=SUB", *secret, typed="long-enough-1\n").code == 0
        shown = accounts("show", "shop-app", "--json")
        assert shown.json["brokers"][peer.broker_name]["topicPerms"] == ["orders=PUB|SUB", "prices=SUB"]
        assert "long-enough-1" not in shown.out
        assert accounts("white-list", "--add", "10.1.1.1", "--yes").code == 0
        assert accounts("white-list", "--clear", "--yes").code == 0
        assert accounts("delete", "shop-app", "--yes").code == 0
        (version,) = accounts("version", "--json").json[0]["files"].values()
        assert version["counter"] > 0
        monkeypatch.delenv("GANTRYMQ_ACCESS_KEY")
        monkeypatch.delenv("GANTRYMQ_SECRET_KEY")
        stranger = accounts("list")
        assert (stranger.code, ".java" in stranger.err) == (1, False)
