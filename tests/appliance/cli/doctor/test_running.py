"""`gantry doctor`, `gantry ready` and /readyz beside an appliance that runs, and beside one that does not."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from pathlib import Path

import pytest

from appliance.__main__ import main
from appliance.broker.controller import BrokerController
from appliance.cli.checks.running import name_servers
from appliance.cli.doctor.ready import ROLES
from appliance.cli.doctor.ready_proxy import why_not
from appliance.proxy.controller import ProxyController
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import read_properties
from appliance.settings.roles import BrokerConfig, ProxyConfig
from store.base.config import MessageStoreConfig
from tests.appliance_process import RunningAppliance, command_of, shared_appliance
from tests.harness import SMALL_STORE
from tests.waiting import WITHIN_S, wait_until

gantry = shared_appliance("--slaves", "1")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `gantry up` was given here, but for its ports: those that it has are in the data folder."""
    monkeypatch.setenv("GANTRY_SLAVES", "1")
    monkeypatch.setenv("GANTRY_ALLOW_ROOT", "1")


@pytest.mark.usefixtures("settings")
def test_the_doctor_finds_name_server_addresses_slaves_and_the_disk(
    gantry: RunningAppliance, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, str] = {}

    def is_well() -> bool:  # a starved process answers too late, which is told as what it looks like
        code = main(["doctor", "--data", gantry.data, "--json"])
        found.clear()
        found.update({one["text"]: one["level"] for one in json.loads(capsys.readouterr().out)})
        problems = [text for text, level in found.items() if level == "problem"]
        return (code, problems) == (0, [])

    wait_until(is_well)
    for words in (f"name server at {gantry.namesrv} answers", f"the address {gantry.broker} of broker-a, which can be "
                  "reached", "broker-a has its 1 slaves", "writes a second", "Python 3", "fast path"):  # fmt: skip
        assert [text for text in found if words in text], words


def test_a_name_server_that_does_not_answer_is_a_problem(
    gantry: RunningAppliance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several the others are looked at all the same."""
    monkeypatch.setenv("GANTRY_ATTACH", f"127.0.0.1:1;{gantry.namesrv}")
    monkeypatch.setenv("GANTRY_ALLOW_ROOT", "1")

    def is_told() -> bool:
        assert main(["doctor", "--data", str(tmp_path)]) == 1
        out = capsys.readouterr().out
        assert "✗ The name server at 127.0.0.1:1 does not answer" in out
        return f"✓ The name server at {gantry.namesrv} answers" in out  # in time, which a starved one may not

    wait_until(is_told)


def test_the_name_servers_are_those_that_the_brokers_register_with(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path)
    assert name_servers(config) == ["127.0.0.1:9876"]
    for broker, addresses in (("broker-a", "10.0.0.1:9876;10.0.0.2:9876"), ("broker-b", "10.0.0.1:9876"), ("c", "")):
        (config.brokers_folder / broker).mkdir(parents=True)
        (config.brokers_folder / broker / "broker.properties").write_text(f"namesrvAddr={addresses}\n")
    assert name_servers(config) == ["10.0.0.1:9876", "10.0.0.2:9876"]


def test_before_a_start_the_doctor_says_what_up_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HTTP_PORT", "NAMESRV_PORT"):
        monkeypatch.setenv(f"GANTRY_{name}", "0")
    monkeypatch.setenv("GANTRY_BIND", "0.0.0.0")
    monkeypatch.setenv("GANTRY_ALLOW_ROOT", "1")
    assert main(["doctor", "--data", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("✗ ") and "use --accounts" in out
    assert f"No appliance runs on {tmp_path}" in out


def proxy_of(gantry: RunningAppliance) -> str:
    settings = read_properties((Path(gantry.data) / "proxies" / "proxy.properties").read_text())
    return f"{settings['bindAddress']}:{settings['grpcServerPort']}"


@pytest.mark.parametrize("live", [(), ("--live",)])
@pytest.mark.parametrize("role", ROLES)
def test_each_process_is_live_and_ready(
    gantry: RunningAppliance, capsys: pytest.CaptureFixture[str], role: str, live: tuple[str, ...]
) -> None:
    addresses = {"web": gantry.http, "namesrv": gantry.namesrv, "broker": gantry.broker, "proxy": proxy_of(gantry)}
    address = addresses[role]
    assert main(["ready", role, address, "--timeout", f"{WITHIN_S:g}", *live]) == 0
    assert capsys.readouterr().out == f"{role} {address}: {'live' if live else 'ready'}\n"


def test_the_page_for_programs_says_nothing_else(gantry: RunningAppliance) -> None:
    with urllib.request.urlopen(f"{gantry.url}/readyz") as answer:
        assert (answer.status, answer.read()) == (200, b"ok\n")


@pytest.mark.parametrize("live", [(), ("--live",)])
def test_a_stopped_broker_is_neither(
    gantry: RunningAppliance, capsys: pytest.CaptureFixture[str], live: tuple[str, ...]
) -> None:
    (broker, *_) = [one for one in gantry.workers("broker") if "broker-a/" in command_of(one)]
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        assert main(["ready", "broker", gantry.broker, "--timeout", "1", *live]) == 1
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert "no answer" in capsys.readouterr().out


async def test_a_proxy_whose_name_servers_are_silent_lives_and_is_not_ready() -> None:
    async with ProxyController(ProxyConfig(listen_port=0, namesrv_addresses="127.0.0.1:1")) as proxy:
        assert await why_not("127.0.0.1", proxy.port, None, WITHIN_S, live=True) == ""
        assert "answers with " in await why_not("127.0.0.1", proxy.port, None, WITHIN_S, live=False)


async def test_a_broker_that_no_name_server_knows_lives_and_is_not_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = BrokerConfig(listen_port=0, namesrv_addresses="127.0.0.1:1")
    store = MessageStoreConfig(root=tmp_path / "store", **SMALL_STORE)
    async with BrokerController(config, store) as broker:
        for live, code, word in (((), 1, "0 of 1 name servers know it"), (("--live",), 0, "live")):
            assert await asyncio.to_thread(main, ["ready", "broker", broker.address, *live]) == code
            assert capsys.readouterr().out == f"broker {broker.address}: {word}\n"


def test_nothing_listens_there(capsys: pytest.CaptureFixture[str]) -> None:
    for role in ROLES:
        assert main(["ready", role, "127.0.0.1:1"]) == 1
    assert capsys.readouterr().out.count("no answer") == len(ROLES)
