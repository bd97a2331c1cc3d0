"""The client against real members of etcd: reads, compare-and-swap, members that are frozen or gone, a user, TLS."""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.register.etcd import EtcdClient, EtcdError, Is, OutcomeUnknown, endpoints_of
from appliance.register.http_call import Answer, CallFailed, Endpoint
from appliance.register.opening import open_etcd
from gantrymq.errors import ConfigError
from gantrymq.timeouts import timeout
from tests.certificates import authority
from tests.conftest import time_limit
from tests.servers.etcd import EtcdMember, etcd, require_user, urls_of
from tests.waiting import WITHIN_S

PREFIX = "/test/"


@pytest.fixture
async def client(member: EtcdMember, patient_clients: None) -> AsyncIterator[EtcdClient]:
    client = EtcdClient(endpoints_of(member.url))
    yield client
    await client.change([], {}, [PREFIX])


async def test_a_key_is_changed_only_at_the_revision_that_was_read(client: EtcdClient) -> None:
    first = await client.change([Is(PREFIX + "a", 0)], {PREFIX + "a": b"\0one\xff"})
    assert first is not None
    assert await client.change([Is(PREFIX + "a", 0)], {PREFIX + "a": b"two"}) is None
    seen = await client.read(PREFIX)
    assert seen.revision >= first and seen.values["a"].data == b"\0one\xff" and seen.values["a"].revision == first
    second = await client.change([Is(PREFIX + "a", first)], {PREFIX + "a": b"two", PREFIX + "b": b""})
    assert second is not None and second > first
    assert {key: value.data for key, value in (await client.read(PREFIX)).values.items()} == {"a": b"two", "b": b""}


async def test_a_prefix_ends_where_the_next_one_begins(client: EtcdClient) -> None:
    await client.change([], {PREFIX + "x/a": b"1", PREFIX + "x0": b"2", PREFIX + "xa": b"3"})
    assert set((await client.read(PREFIX + "x/")).values) == {"a"}
    await client.change([], {}, [PREFIX + "x/"])
    assert set((await client.read(PREFIX)).values) == {"x0", "xa"}


async def test_of_many_that_swap_at_once_one_wins(client: EtcdClient) -> None:
    swaps = [client.change([Is(PREFIX + "term", 0)], {PREFIX + "term": b"%d" % number}) for number in range(20)]
    revisions = await asyncio.gather(*swaps)
    assert sum(revision is not None for revision in revisions) == 1


@pytest.mark.slow
async def test_a_frozen_member_costs_a_try_and_a_lost_majority_the_deadline(tmp_path: Path) -> None:
    with etcd(tmp_path, members=3) as members:
        client = EtcdClient(endpoints_of(urls_of(members)), deadline_s=20)
        assert await client.change([], {PREFIX + "a": b"1"})
        members[0].signal(signal.SIGSTOP)
        began = time.monotonic()
        assert (await client.read(PREFIX)).values["a"].data == b"1"
        assert time.monotonic() - began < time_limit(8)
        assert await client.change([], {PREFIX + "a": b"2"})  # of the member that answered, no longer the first
        members[1].signal(signal.SIGSTOP)
        members[2].signal(signal.SIGSTOP)
        hasty = EtcdClient(endpoints_of(urls_of(members)), deadline_s=1)
        with pytest.raises(EtcdError, match="no member of etcd answers"):
            await hasty.read(PREFIX)
        with pytest.raises(OutcomeUnknown):
            await hasty.change([], {PREFIX + "a": b"3"})
        for each in members:
            each.signal(signal.SIGCONT)
        assert (await client.read(PREFIX)).values["a"].data in (b"2", b"3")


async def test_after_a_change_without_an_answer_the_next_call_asks_another_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[str]()

    async def post(endpoint: Endpoint, *_rest: object) -> Answer:
        asked.append(endpoint.host)
        if endpoint.host == "one":
            raise CallFailed("it stands still", was_sent=True)
        return Answer(200, b"{}")

    monkeypatch.setattr("appliance.register.etcd.post", post)
    client = EtcdClient(endpoints_of("http://one:1,http://two:1,http://three:1"))
    with pytest.raises(OutcomeUnknown):
        await client.change([], {PREFIX + "a": b""})
    await client.read(PREFIX)
    assert asked == ["one", "two"]


@pytest.mark.slow
@pytest.mark.usefixtures("patient_clients")
async def test_a_member_that_is_gone_is_passed_over_also_by_a_transaction(tmp_path: Path) -> None:
    with etcd(tmp_path, members=3) as members:
        endpoints = endpoints_of(urls_of(members))
        client = EtcdClient(endpoints, deadline_s=20)
        members[0].kill()
        await EtcdClient(endpoints[1:], deadline_s=WITHIN_S).read(PREFIX)  # it may have led: the others elect first
        assert await client.change([Is(PREFIX + "a", 0)], {PREFIX + "a": b"1"})


async def test_without_any_member_the_error_names_them() -> None:
    client = EtcdClient(endpoints_of("http://127.0.0.1:1, http://[::1]:1"), deadline_s=0.5)
    with pytest.raises(EtcdError, match=r"answers: http://127\.0\.0\.1:1: .*; http://\[::1\]:1: "):
        await client.change([], {"a": b""})


@pytest.mark.slow
@pytest.mark.usefixtures("patient_clients")
async def test_a_user_signs_in_and_again_when_the_rights_have_changed(tmp_path: Path) -> None:
    with etcd(tmp_path) as (member,):
        await require_user(member, "gantry", "s3cret")
        with pytest.raises(EtcdError, match=r"user name is empty|invalid auth token"):
            await EtcdClient(endpoints_of(member.url)).read(PREFIX)
        with pytest.raises(EtcdError, match="etcdUser=gantry"):
            await EtcdClient(endpoints_of(member.url), user="gantry", password="wrong").read(PREFIX)
        client = EtcdClient(endpoints_of(member.url), user="gantry", password="s3cret", deadline_s=20)
        assert await client.change([], {PREFIX + "a": b"1"})
        member.kill()
        member.start([member])  # which has forgotten the token
        assert (await client.read(PREFIX)).values["a"].data == b"1"


@pytest.mark.slow
@pytest.mark.usefixtures("patient_clients")
async def test_tls_is_spoken_to_a_member_that_the_authority_signed(tmp_path: Path) -> None:
    folder = authority()
    ca_file, certificate = str(folder / "ca.pem"), (folder / "server.pem", folder / "server.key")
    with etcd(tmp_path, certificate=certificate, ca_file=ca_file) as (member,):
        assert await EtcdClient(endpoints_of(member.url, ca_file)).change([], {PREFIX + "a": b"1"})
        stranger = EtcdClient(endpoints_of(member.url, str(authority("theirs") / "ca.pem")), deadline_s=1)
        with pytest.raises(EtcdError, match="certificate"):
            await stranger.read(PREFIX)


@pytest.mark.slow
@pytest.mark.usefixtures("patient_clients")
async def test_another_authority_in_its_file_counts_with_the_call_after_a_refusal(tmp_path: Path) -> None:
    folder, file = authority(), tmp_path / "ca.pem"
    certificate = (folder / "server.pem", folder / "server.key")
    shutil.copy(authority("theirs") / "ca.pem", file)
    with etcd(tmp_path, certificate=certificate, ca_file=str(folder / "ca.pem")) as (member,):
        members = endpoints_of(member.url, str(file))
        client = EtcdClient(members, deadline_s=1, reread=lambda: (endpoints_of(member.url, str(file)), ""))
        file.unlink()  # it is just replaced
        for _ in range(2):
            with pytest.raises(EtcdError, match="certificate"):
                await client.read(PREFIX)
        shutil.copy(folder / "ca.pem", file)
        async with timeout(WITHIN_S):
            while not await _answers(client):
                pass


async def _answers(client: EtcdClient) -> bool:
    try:
        return bool((await client.read(PREFIX)).revision)
    except EtcdError:  # it was slow
        return False


@pytest.mark.slow
@pytest.mark.usefixtures("patient_clients")
async def test_another_password_in_its_file_counts_with_the_call_after_a_refusal(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("of before")
    with etcd(tmp_path) as (member,):
        await require_user(member, "gantry", "s3cret")
        client = open_etcd(member.url, "gantry", str(file), "")
        with pytest.raises(EtcdError, match="etcdUser=gantry"):
            await client.read(PREFIX)
        file.write_text("s3cret")
        assert (await client.read(PREFIX)).revision


@pytest.mark.parametrize("text", ["etcd:2379", "ftp://a:1", "http://", "http://a:1/x", "http://a:99999", "https://a b"])
def test_an_endpoint_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="etcdEndpoints"):
        endpoints_of(text, "no-such-file" if text.startswith("https") else "")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxxx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x" * 20_000,
        b"HTTP/1.1 503 Gone\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_what_is_no_answer_of_etcd_is_an_error_and_nothing_is_taken_for_done(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        client = EtcdClient(endpoints_of(f"http://127.0.0.1:{port}"), deadline_s=0.3)
        with pytest.raises(OutcomeUnknown):
            await client.change([], {"a": b"1"})
        with pytest.raises(EtcdError):
            await client.read("a")
