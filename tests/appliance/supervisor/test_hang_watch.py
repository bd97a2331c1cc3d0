"""A worker that answers nothing is killed and started again; one that is slow or starved is left alone."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from appliance.own_files import ROOT
from appliance.proxy.controller import ProxyController
from appliance.settings.roles import ProxyConfig
from appliance.supervisor import hang_watch
from appliance.supervisor.child import ChildSpec
from appliance.supervisor.hang_timer import CpuWait
from appliance.supervisor.hang_watch import HangWatch
from appliance.supervisor.supervisor import HangLimit, Supervisor
from gantrymq.remoting.protocol import RemotingProtocol
from tests.appliance.supervisor.guarded import Guarded
from tests.waiting import WITHIN_S, until

ASKED = 20


async def test_a_stopped_name_server_is_killed_and_serves_again(tmp_path: Path, guarded: Guarded) -> None:
    (tmp_path / "namesrv.conf").write_text(f"listenPort=0\nkvConfigPath={tmp_path / 'kv.json'}\n")
    command = (sys.executable, "-m", "appliance", "namesrv", "-c", str(tmp_path / "namesrv.conf"))
    spec = ChildSpec(name="namesrv", role="namesrv", command=command, environment={"PYTHONPATH": str(ROOT)})
    supervisor = Supervisor([[spec]], guarded.link, logs_folder=tmp_path, hang=HangLimit(2.0))
    task = asyncio.create_task(supervisor.run())
    try:
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        pid = supervisor.snapshot()[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: supervisor.snapshot()[0].pid not in (None, pid))
        await until(lambda: supervisor.snapshot()[0].state == "running")
        status = supervisor.snapshot()[0]
        assert (status.restarts, status.exit_code) == (1, -signal.SIGKILL)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Listener:
    """Takes connections; answers every request after `delay_s`, or with `delay_s` None never."""

    def __init__(self, delay_s: float | None, *, closes: bool = False) -> None:
        self.delay_s, self.closes, self.asked = delay_s, closes, 0

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = RemotingProtocol()
        while data := await reader.read(65536):
            protocol.receive_data(data)
            while (request := protocol.next_command()) is not None:
                self.asked += 1
                if self.closes:
                    writer.close()
                    return
                if self.delay_s is not None:
                    await asyncio.sleep(self.delay_s)
                    writer.write(request.reply().encode())
        writer.close()


async def watching(listener: Listener, enough: int, monkeypatch: pytest.MonkeyPatch, *, limit_s: float = 5.0) -> bool:
    """Whether the listener was found hanging before it was asked so often."""
    monkeypatch.setattr(hang_watch, "TICK_S", 0.02)
    monkeypatch.setattr(hang_watch, "ASK_EACH_S", 0.01)
    async with listener as address:
        watch = asyncio.create_task(HangWatch(address, os.getpid(), limit_s=limit_s).until_hung())
        await until(lambda: watch.done() or listener.asked >= enough)
        was_hung = watch.done()
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        return was_hung


async def test_silence_is_found_and_an_answer_of_any_kind_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuWait, "since_last_s", lambda self, elapsed_s: 0.0)
    assert await watching(Listener(None), 2, monkeypatch, limit_s=0.1)
    assert not await watching(Listener(0.0), 40, monkeypatch), "over several connections"
    assert not await watching(Listener(0.0, closes=True), 20, monkeypatch)


async def test_a_proxy_is_watched_without_a_line_in_the_log_for_each_question(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends each connection that is not HTTP/2."""
    monkeypatch.setattr(hang_watch, "ASK_EACH_S", 0.01)
    asked = Mock(wraps=asyncio.open_connection)
    monkeypatch.setattr(asyncio, "open_connection", asked)
    caplog.set_level(logging.INFO)
    async with ProxyController(ProxyConfig(listen_port=0, namesrv_addresses="127.0.0.1:1")) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        watch = asyncio.create_task(HangWatch(address, os.getpid(), limit_s=5, speaks_http=True).until_hung())
        await until(lambda: asked.call_count > ASKED)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
    assert not [record for record in caplog.records if address in record.getMessage()]


async def test_a_worker_that_gets_no_core_is_not_found_hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuWait, "since_last_s", lambda self, elapsed_s: elapsed_s)
    assert not await watching(Listener(0.5), 2, monkeypatch, limit_s=0.1), "five times the limit, without a core"


async def test_a_port_that_nothing_listens_on_is_for_others_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang_watch, "TICK_S", 0.02)
    monkeypatch.setattr(hang_watch, "ASK_EACH_S", 0.01)
    watch = asyncio.create_task(HangWatch("127.0.0.1:9", os.getpid(), limit_s=0.2).until_hung())
    done, _ = await asyncio.wait({watch}, timeout=0.4)
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    assert not done
