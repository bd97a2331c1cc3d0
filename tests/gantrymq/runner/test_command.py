"""`python -m gantrymq run`, as a process at a running broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gantrymq import Message, Producer
from gantrymq.runner.command import main
from gantrymq.runner.reload import changed_file, sources
from tests.gantrymq.client.seen import until
from tests.harness import serving
from tests.source_files import ROOT

CONSUMER = """
from gantrymq import ConsumeFrom, {kind}

def listener(messages):
    for message in messages:
        print("{word}", message.body.decode(), flush=True)

def make():
    consumer = {kind}("{address}", group="{word}", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET)
    consumer.subscribe("T")
    return consumer

consumer = make()
"""
APP = """
from gantrymq import App, ConsumeFrom

app = App("{address}")

@app.consumer("T", group="app", consume_from=ConsumeFrom.FIRST_OFFSET)
def listen(text: str) -> None:
    print("app", text, flush=True)
"""
WITHIN_S = 90.0  # a process starts, imports and joins a group


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The command in that folder, and the file it writes to."""
    output = folder / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "gantrymq", "run", *arguments], cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield process, output
    finally:
        if process.poll() is None:
            process.terminate()  # not killed: it has a child to end
            process.wait(WITHIN_S)


async def test_a_changed_file_starts_the_consumer_anew_and_a_signal_ends_both(tmp_path: Path) -> None:
    source = tmp_path / "shop.py"
    async with serving(tmp_path / "broker") as cluster, Producer(cluster.namesrv_address) as producer:
        address = cluster.namesrv_address
        await producer.send(Message("T", b"message"))
        source.write_text(CONSUMER.format(kind="PushConsumer", word="first", address=address))
        with running(tmp_path, "shop:consumer", "--reload") as (process, output):
            await until(lambda: "first message" in output.read_text(), within_s=WITHIN_S)
            source.write_text("a mistake that ends the child (")
            await until(lambda: "waiting for a change" in output.read_text(), within_s=WITHIN_S)
            source.write_text(CONSUMER.format(kind="SyncPushConsumer", word="second", address=address))
            await until(lambda: "second message" in output.read_text(), within_s=WITHIN_S)
            source.write_text(APP.format(address=address) + "consumer = app\n")
            await until(lambda: "app message" in output.read_text(), within_s=WITHIN_S)
            process.send_signal(signal.SIGINT)
            await until(lambda: process.poll() is not None, within_s=WITHIN_S)
            assert process.returncode == 0, output.read_text()


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("shop", "module:consumer is wanted"),
        ("no.such.module:x", "there is no module no"),
        ("shop:nothing", "shop has no nothing"),
        ("shop:number", "an App, PushConsumer or SyncPushConsumer is wanted, not int"),
    ],
)
def test_what_names_no_consumer_is_said_in_words(
    target: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.py").write_text("number = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert main(["run", target]) == 2
    finally:
        sys.modules.pop("shop", None)
    assert told in capsys.readouterr().err


def test_sources_are_the_python_files_but_those_of_others(tmp_path: Path) -> None:
    for name in ("a.py", "b.txt", "inner/c.py", ".venv/d.py", "__pycache__/e.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    before = sources(tmp_path)
    assert {path.name for path in before} == {"a.py", "c.py"}
    assert changed_file(before, sources(tmp_path)) is None
    (tmp_path / "inner" / "c.py").write_text("x = 1 + 1\n")
    assert changed_file(before, sources(tmp_path)) == tmp_path / "inner" / "c.py"
    (tmp_path / "inner" / "c.py").unlink()
    assert changed_file(before, sources(tmp_path)) == tmp_path / "inner" / "c.py"
