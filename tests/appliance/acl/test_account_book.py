"""Accounts files: read, watched, changed, and never half written."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from appliance.acl import account_book
from appliance.acl.account import ANY, PUB, SUB, AccountError
from appliance.acl.account_book import AccountBook
from appliance.acl.account_changes import MASK, delete_account, listing, update_account, update_white_addresses
from appliance.acl.account_file import AccountFileError, read_content, read_document, write_document
from tests.appliance.acl.cluster import accounts_file
from tests.waiting import WITHIN_S, until, wait_until

SECRET = "canary-secret-7351"
NEW = {"accessKey": "newUserKey", "secretKey": SECRET}


def book_of(folder: Path, text: str) -> AccountBook:
    accounts_file(folder, text)
    book = AccountBook(folder)
    book.load()
    return book


def test_rocketmqs_own_example_is_read(tmp_path: Path) -> None:
    book = book_of(
        tmp_path,
        """
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.*
accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB
      - groupC=SUB
  - accessKey: rocketmq2
    secretKey: 012345678
    whiteRemoteAddress: 192.168.1.*
    admin: true
""",
    ).current
    first, second = book.by_key["RocketMQ"], book.by_key["rocketmq2"]
    assert book.is_white("10.10.103.9") and book.is_white("192.168.0.9") and not book.is_white("192.168.1.9")
    assert not first.may_topic("topicA", SUB) and first.may_topic("topicB", PUB) and first.may_topic("topicC", SUB)
    assert not first.may_topic("topicC", PUB) and first.may_topic("topicC", ANY) and not first.may_topic("other", SUB)
    assert not first.may_group("groupA") and first.may_group("groupC") and first.may_group("other")
    assert not first.may_topic("%RETRY%groupA", SUB) and first.may_topic("%DLQ%groupC", SUB)
    assert second.may_everything and second.is_white("192.168.1.5") and not first.is_white("192.168.1.5")
    content = read_content(tmp_path / "conf/plain_acl.yml")
    assert content.raw_accounts[0]["secretKey"] == "12345678"
    assert content.raw_accounts[1]["secretKey"] == "012345678"  # not the octal number that YAML makes of it


def test_an_administrator_with_permissions_of_its_own_has_these() -> None:
    from appliance.acl.account import read_account

    account = read_account({"accessKey": "admin12", "secretKey": "secret12", "admin": "true", "topicPerms": ["T=SUB"]})
    assert account.is_admin and not account.may_everything
    assert account.may_topic("T", SUB) and not account.may_topic("T", PUB) and not account.may_topic("U", SUB)


@pytest.mark.parametrize(
    "topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC", "DefaultCluster_REPLY_TOPIC"]
)
def test_no_default_opens_topics_that_hold_other_topics_messages(topic: str) -> None:
    from appliance.acl.account import read_account

    keys = {"accessKey": "open1234", "secretKey": "secret12"}
    account = read_account(keys | {"defaultTopicPerm": "PUB|SUB"})
    assert not account.may_topic(topic, SUB) and account.may_topic("OrdinaryTopic", SUB)
    named = read_account(keys | {"topicPerms": [f"{topic}=SUB"]})
    assert named.may_topic(topic, SUB)


def test_every_account_may_send_traces() -> None:
    from appliance.acl.account import read_account

    account = read_account({"accessKey": "poor1234", "secretKey": "secret12"})
    assert account.may_topic("RMQ_SYS_TRACE_TOPIC", PUB) and not account.may_topic("RMQ_SYS_TRACE_TOPIC", SUB)


def test_a_key_in_two_files_belongs_to_the_first(tmp_path: Path) -> None:
    (tmp_path / "conf/acl/team").mkdir(parents=True)
    one = "accounts: [{accessKey: twice123, secretKey: first123, admin: true}]"
    (tmp_path / "conf/acl/team/a.yml").write_text(one)
    (tmp_path / "conf/acl/notes.txt").write_text("accounts: [{accessKey: never123, secretKey: never123}]")
    book = book_of(
        tmp_path, "accounts: [{accessKey: twice123, secretKey: other123}, {accessKey: third12, secretKey: s123456}]"
    )
    assert set(book.current.by_key) == {"twice123", "third12"}
    assert book.current.by_key["twice123"].is_admin
    assert len(listing(book)["plainAccessConfigs"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "accounts: [",
        "accounts: {a: b}",
        "- just a list",
        "accounts:\n- accessKey: short\n  secretKey: " + SECRET,
        "accounts:\n- secretKey: " + SECRET,
        "accounts:\n- accessKey: longEnough\n  secretKey: [" + SECRET + "]",
        "accounts:\n- accessKey: longEnough\n  secretKey: " + SECRET + "\n  topicPerms: [a=b=c]",
        "accounts:\n- accessKey: longEnough\n  secretKey: " + SECRET + "\n  whiteRemoteAddress: nowhere",
        "globalWhiteRemoteAddresses: [10.0.0.999]",
        'accounts: "' + SECRET,
        "x: " + SECRET + "\n\tbad: indent",
        "x: *" + SECRET,
        "dataVersion: [{counter: many}]",
    ],
)
def test_a_broken_file_keeps_the_accounts_and_is_told_without_its_text(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    book = book_of(tmp_path, "accounts: [{accessKey: before12, secretKey: before12}]")
    accounts_file(tmp_path, text)
    with caplog.at_level(logging.INFO):
        book.refresh()
        book.refresh()
    assert set(book.current.by_key) == {"before12"}
    told = [record for record in caplog.records if record.__dict__.get("event") == "acl_file_broken"]
    assert len(told) == 1
    assert SECRET not in str(told[0].__dict__)
    with pytest.raises(AccountFileError) as refused:
        AccountBook(tmp_path).load()
    assert SECRET not in str(refused.value) and "plain_acl.yml" in str(refused.value)
    accounts_file(tmp_path, "accounts: [{accessKey: after123, secretKey: after123}]")
    book.refresh()
    assert set(book.current.by_key) == {"after123"}


def test_tags_and_aliases_make_nothing_but_texts(tmp_path: Path) -> None:
    path = accounts_file(tmp_path, "accounts: !!python/object/apply:os.system ['touch pwned']\nx: &a [1]\ny: *a\n")
    document = read_document(path)
    assert document == {"accounts": ["touch pwned"], "x": ["1"], "y": ["1"]}


def test_a_default_file_that_vanishes_takes_no_account_away(tmp_path: Path) -> None:
    book = book_of(tmp_path, "accounts: [{accessKey: before12, secretKey: before12}]")
    book.default_file.unlink()
    book.refresh()
    assert set(book.current.by_key) == {"before12"}


def test_a_missing_file_is_made_empty_and_private(tmp_path: Path) -> None:
    book = AccountBook(tmp_path)
    book.load()
    assert book.current.by_key == {}
    assert book.default_file.stat().st_mode & 0o777 == 0o600


async def test_a_change_of_the_file_is_seen_while_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_book, "WATCH_INTERVAL_S", 0.01)
    book = book_of(tmp_path, "accounts: []")
    watch = asyncio.create_task(book.run())
    try:
        (tmp_path / "conf/acl").mkdir()
        (tmp_path / "conf/acl/a.yaml").write_text("accounts: [{accessKey: fresh123, secretKey: fresh123}]")
        await until(lambda: "fresh123" in book.current.by_key)
        (tmp_path / "conf/acl/a.yaml").unlink()
        await until(lambda: "fresh123" not in book.current.by_key)
    finally:
        watch.cancel()


# -- changes ----------------------------------------------------------------------------------------------------------


def test_an_account_is_made_changed_and_deleted(tmp_path: Path) -> None:
    book = book_of(tmp_path, "globalWhiteRemoteAddresses: [10.0.0.1]\nunknown: 5\naccounts:\n")
    update_account(
        book,
        NEW | {"admin": "false", "topicPerms": "a=PUB,b=PUB|SUB", "groupPerms": "g=SUB", "defaultTopicPerm": "SUB"},
    )
    account = book.current.by_key["newUserKey"]
    assert account.may_topic("a", PUB) and account.may_topic("b", SUB) and account.may_topic("z", SUB)
    assert account.may_group("g") and not account.may_group("h")
    assert book.version().counter == 1
    update_account(book, {"accessKey": "newUserKey", "topicPerms": "a=DENY", "secretKey": MASK})
    account = book.current.by_key["newUserKey"]
    assert not account.may_topic("a", PUB) and account.may_group("g")
    document = read_document(book.default_file)
    assert document["accounts"][0]["secretKey"] == SECRET
    assert document["unknown"] == "5" and document["globalWhiteRemoteAddresses"] == ["10.0.0.1"]
    assert book.default_file.stat().st_mode & 0o777 == 0o600
    update_account(book, {"accessKey": "newUserKey", "topicPerms": "a=DENY"})
    assert book.version().counter == 2  # nothing changed, nothing written
    delete_account(book, "newUserKey")
    assert book.current.by_key == {} and book.version().counter == 3


def test_a_listing_has_a_mask_in_each_secrets_place(tmp_path: Path) -> None:
    book = book_of(tmp_path, f"accounts: [{{accessKey: showMe12, secretKey: {SECRET}, note: {SECRET}}}]")
    shown = listing(book)
    assert SECRET not in str(shown)
    assert shown["plainAccessConfigs"] == [{"accessKey": "showMe12", "admin": False, "secretKey": MASK}]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"accessKey": "abc", "secretKey": "def"}, "cannot be null and length should longer than 6"),
        ({"accessKey": "abcdefgh"}, "cannot be null and length should longer than 6"),
        ({"accessKey": "abcdefgh", "secretKey": MASK}, "cannot be null and length should longer than 6"),
        ({"secretKey": "abcdefgh"}, "cannot be null and length should longer than 6"),
        (NEW | {"topicPerms": "topicA=WRONG"}, "Parse resource permission error for topicA=WRONG."),
        (NEW | {"groupPerms": "groupA"}, "Parse Resource format error for groupA."),
        (NEW | {"defaultTopicPerm": "ALL"}, "defaultTopicPerm=ALL"),
        (NEW | {"whiteRemoteAddress": "10.0.0.999"}, "whiteRemoteAddress"),
    ],
)
def test_what_an_account_can_not_be_is_refused(tmp_path: Path, fields: dict[str, str], text: str) -> None:
    book = book_of(tmp_path, "accounts: []")
    before = book.default_file.read_text()
    with pytest.raises(AccountError) as refused:
        update_account(book, fields)
    assert text in str(refused.value) and SECRET not in str(refused.value)
    assert book.default_file.read_text() == before


def test_the_appliances_own_account_is_no_requests_to_change(tmp_path: Path) -> None:
    book = book_of(tmp_path, f"accounts: [{{accessKey: ownKey12, secretKey: {SECRET}, managedBy: appliance}}]")
    for change in (
        lambda: update_account(book, {"accessKey": "ownKey12", "secretKey": "stolen-secret"}),
        lambda: delete_account(book, "ownKey12"),
    ):
        with pytest.raises(AccountError, match="own account"):
            change()


def test_the_white_list_changes_in_files_of_the_book_only(tmp_path: Path) -> None:
    book = book_of(tmp_path, "accounts: []")
    stranger = tmp_path / "conf" / "stranger.yml"
    stranger.write_text("a: b\n")
    update_white_addresses(book, "10.0.0.1, 10.1.*.*", "")
    assert book.current.is_white("10.1.2.3")
    for addresses, file in (("10.0.0.1", str(stranger)), ("10.0.0.1", "/etc/passwd.yml"), (None, ""), ("nowhere", "")):
        with pytest.raises(AccountError, match="has been updated failed"):
            update_white_addresses(book, addresses, file)
    assert stranger.read_text() == "a: b\n"
    update_white_addresses(book, "", "")
    assert not book.current.is_white("10.1.2.3")


def test_two_brokers_with_one_file_both_delete_an_account(tmp_path: Path) -> None:
    text = f"accounts: [{{accessKey: newUserKey, secretKey: {SECRET}}}]"
    books = book_of(tmp_path, text), book_of(tmp_path, text)
    for book in books:
        delete_account(book, "newUserKey")
        assert book.current.by_key == {}
    assert [book.version().counter for book in books] == [1, 1]
    with pytest.raises(AccountError, match=r"\[newUserKey\] .* has been deleted failed"):
        delete_account(books[0], "newUserKey")  # which has deleted it itself


def test_an_account_that_never_was_or_is_long_gone_is_not_called_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"accounts: [{{accessKey: newUserKey, secretKey: {SECRET}}}]"
    one, other = book_of(tmp_path, text), book_of(tmp_path, text)
    with pytest.raises(AccountError, match=r"\[neverWas1\] .* has been deleted failed"):
        delete_account(one, "neverWas1")
    delete_account(other, "newUserKey")
    one.refresh()
    monkeypatch.setattr(account_book, "MOMENT_S", -1.0)
    with pytest.raises(AccountError, match="has been deleted failed"):
        delete_account(one, "newUserKey")


def test_an_account_that_came_back_and_was_deleted_here_is_not_called_deleted_again(tmp_path: Path) -> None:
    text = f"accounts: [{{accessKey: newUserKey, secretKey: {SECRET}}}]"
    one, other = book_of(tmp_path, text), book_of(tmp_path, text)
    delete_account(other, "newUserKey")
    one.refresh()
    update_account(one, NEW)
    delete_account(one, "newUserKey")
    with pytest.raises(AccountError, match="has been deleted failed"):
        delete_account(one, "newUserKey")


def test_no_account_is_called_deleted_while_a_file_that_may_hold_it_is_not_understood(tmp_path: Path) -> None:
    book = book_of(tmp_path, "accounts: []")
    other = tmp_path / "conf" / "acl" / "more.yml"
    other.parent.mkdir(exist_ok=True)
    other.write_text(f"accounts: [{{accessKey: newUserKey, secretKey: {SECRET}")
    with pytest.raises(AccountError, match=r"It may be in .*more\.yml") as refused:
        delete_account(book, "newUserKey")
    assert SECRET not in str(refused.value)
    other.unlink()
    with pytest.raises(AccountError, match="has been deleted failed") as refused:
        delete_account(book, "newUserKey")
    assert "more.yml" not in str(refused.value)


WRITER = """
import sys
from pathlib import Path
from appliance.acl.account_book import AccountBook
from appliance.acl.account_changes import update_account
book = AccountBook(Path(sys.argv[1])); book.load()
print("ready", flush=True)
for number in range(1_000_000):
    update_account(book, {"accessKey": "victim12", "secretKey": f"secret-{number:08}", "topicPerms": f"t{number}=SUB"})
"""


def test_a_killed_writer_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """S43."""
    path = accounts_file(tmp_path, "accounts: [{accessKey: keeper12, secretKey: keeper12, admin: true}]")
    for round_number in range(8):
        before = path.read_bytes()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
        )
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        wait_until(lambda: path.read_bytes() != before)  # noqa: B023 - called in this round only
        time.sleep(0.017 * round_number)  # the kill comes at another moment of its writing each round
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        content = read_content(path)
        assert content.accounts[0].access_key == "keeper12" and content.accounts[0].may_everything
        assert path.stat().st_mode & 0o777 == 0o600
    assert len(read_content(path).accounts) == 2


def test_two_processes_lose_no_change_of_each_other(tmp_path: Path) -> None:
    accounts_file(tmp_path, "accounts: []")
    program = WRITER.replace("1_000_000", "20").replace('"victim12"', "sys.argv[2] + str(number)")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path), name], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
        )
        for name in ("first-writer", "second-writer")
    ]
    for writer in writers:
        writer.communicate(timeout=WITHIN_S)
        assert writer.returncode == 0
    content = read_content(tmp_path / "conf/plain_acl.yml")
    assert len(content.accounts) == 40 and content.version.counter == 40


def test_texts_survive_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    keys = ["0123456", "true", "1e3", "ü: {x}", "~", "'quoted'", "a\nb", " spaces "]
    write_document(path, {"accounts": [{"secretKey": key} for key in keys], "dataVersion": [{"counter": "7"}]})
    assert [item["secretKey"] for item in read_document(path)["accounts"]] == keys
    assert "counter: 7\n" in path.read_text()
