"""The launcher of the single file, with a payload that says what it is run with: unpacks once, whatever is killed."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import signal
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.binary.assembly import LAUNCHER, compile_launcher
from deploy.binary.parts import read_lock
from tests.conftest import missing, require_tool
from tests.waiting import wait_until

INTERPRETER = """#!/bin/sh
echo "$@"
env
exit 7
"""


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_tool("go", "it compiles the launcher")
    to = tmp_path_factory.mktemp("launcher") / "launcher"
    compile_launcher(read_lock(), to)
    return to


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "trees"


def single_file(launcher: Path, to: Path, interpreter: str = INTERPRETER, *, filler: int = 0) -> Path:
    """filler: bytes of a further member that do not compress."""
    try:
        import zstandard
    except ImportError:
        missing("zstandard", "install deploy/locks/test.lock")
    members = io.BytesIO()
    with tarfile.open(fileobj=members, mode="w") as archive:
        for name, content in (("bin/python3", interpreter.encode()), ("filler", os.urandom(filler))):
            item = tarfile.TarInfo(name)
            item.size, item.mode = len(content), 0o755
            if "/" in name:
                place = tarfile.TarInfo(name.partition("/")[0])
                place.type = tarfile.DIRTYPE
                archive.addfile(place)
            archive.addfile(item, io.BytesIO(content))
    payload = zstandard.compress(members.getvalue())
    program = launcher.read_bytes()
    trailer = struct.pack("<QQ", len(program), len(payload)) + hashlib.sha256(payload).digest() + b"GANTRY01"
    to.write_bytes(program + payload + trailer)
    to.chmod(0o755)
    return to


def run(file: Path, folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "GANTRY_UNPACK": str(folder), **variables}
    return subprocess.run([file, *words], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["", "--data /x", "store check /x", "--version", "-h"])
def test_it_becomes_the_interpreter_with_these_words(launcher: Path, folder: Path, tmp_path: Path, words: str) -> None:
    done = run(single_file(launcher, tmp_path / "gantry"), folder, *words.split())
    assert (done.returncode, done.stdout.splitlines()[0]) == (7, f"-P -m appliance {words}".rstrip())


def test_variables_of_another_python_and_its_own_do_not_pass(launcher: Path, folder: Path, tmp_path: Path) -> None:
    done = run(single_file(launcher, tmp_path / "gantry"), folder, PYTHONPATH="/other", GANTRY_HTTP_PORT="1")
    found = set(done.stdout.splitlines()[1:])
    assert {"GANTRY_HTTP_PORT=1", "PYTHONNOUSERSITE=1", "PYTHONDONTWRITEBYTECODE=1"} <= found
    assert not [line for line in found if line.startswith(("PYTHONPATH", "GANTRY_UNPACK"))]


def test_it_unpacks_once_and_another_file_elsewhere(launcher: Path, folder: Path, tmp_path: Path) -> None:
    file = single_file(launcher, tmp_path / "gantry")
    assert "unpacking into" in run(file, folder).stderr
    (tree,) = trees(folder)
    assert run(file, folder).stderr == ""
    run(single_file(launcher, tmp_path / "newer", INTERPRETER + "# newer\n"), folder)
    assert len(trees(folder)) == 2 and tree in trees(folder)


def test_a_start_that_was_killed_while_unpacking_goes_on(launcher: Path, folder: Path, tmp_path: Path) -> None:
    file = single_file(launcher, tmp_path / "gantry", filler=200 << 20)
    first = subprocess.Popen([file], env={"GANTRY_UNPACK": str(folder)}, stderr=subprocess.DEVNULL)
    wait_until(lambda: any(folder.glob("*.unfinished/filler")))
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not trees(folder)
    assert run(file, folder).returncode == 7
    (tree,) = trees(folder)
    assert (tree / "filler").stat().st_size == 200 << 20
    assert {path.name for path in folder.iterdir()} == {tree.name, "lock"}


def test_two_first_starts_at_once_unpack_one_tree(launcher: Path, folder: Path, tmp_path: Path) -> None:
    file = single_file(launcher, tmp_path / "gantry", filler=20 << 20)
    environment = {"GANTRY_UNPACK": str(folder), "PATH": "/bin:/usr/bin"}
    started = [
        subprocess.Popen([file], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [7] * 4
    assert "".join(said).count("unpacking into") == 1 == len(trees(folder))


def cut(content: bytes) -> bytes:
    return content[:-1000]


def flipped(content: bytes) -> bytes:
    at = len(content) - 200
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(("damage", "words"), [(cut, "not whole"), (flipped, "gantry: unpacking into")])
def test_a_damaged_file_leaves_no_tree(
    launcher: Path, folder: Path, tmp_path: Path, damage: object, words: str
) -> None:
    file = single_file(launcher, tmp_path / "gantry", filler=1 << 20)
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    done = run(file, folder)
    assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    assert not folder.exists() or not trees(folder)


@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o755, 4321)])
def test_a_folder_that_another_account_can_write_is_refused(
    launcher: Path, folder: Path, tmp_path: Path, mode: int, owner: int
) -> None:
    if os.geteuid() != 0:
        missing("root", "only root gives folders away")
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, owner, owner)
    done = run(single_file(launcher, tmp_path / "gantry"), folder)
    assert done.returncode == 1 and str(folder) in done.stderr and "account" in done.stderr


def test_what_root_unpacks_all_accounts_may_run_whatever_its_mask(launcher: Path, folder: Path, tmp_path: Path) -> None:
    file = single_file(launcher, tmp_path / "gantry", "#!/bin/sh\numask\n")
    masked = ["sh", "-c", 'umask 077; exec "$0"', str(file)]
    done = subprocess.run(masked, env={"GANTRY_UNPACK": str(folder)}, capture_output=True, text=True, check=True)
    assert done.stdout == "0077\n"  # the command's own mask is what it was
    (tree,) = trees(folder)
    assert tree.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o755 for path in tree.rglob("*")} == {0o755}


def test_a_tree_that_this_account_may_not_enter_is_passed_by(launcher: Path) -> None:
    """It names a folder instead of ending in the middle."""
    if os.geteuid() != 0:
        missing("root", "only root runs as another account")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:  # all accounts can enter this one
        Path(place).chmod(0o755)
        file, folder = single_file(launcher, Path(place) / "gantry"), Path(place) / "trees"
        assert run(file, folder).returncode == 7
        (tree,) = trees(folder)
        as_other = ["setpriv", "--reuid=4321", "--clear-groups", str(file)]
        environment = {"GANTRY_UNPACK": str(folder), "PATH": "/usr/bin:/bin"}
        for mode, words in ((0o755, ""), (0o700, "no folder to unpack into")):
            tree.chmod(mode)
            done = subprocess.run(as_other, env=environment, capture_output=True, text=True, check=False)
            assert (done.returncode, words in done.stderr) == (1 if words else 7, True), done.stderr


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own."""
    if os.geteuid() != 0:
        missing("root", "only root mounts")
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True, check=False
    ).returncode:
        missing("the right to mount", "a file system of its own is made")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_passed_by_and_named_where_there_is_no_other(launcher: Path) -> None:
    account = 43210  # of nobody here
    next_place = Path(f"/var/tmp/gantrymq-{account}")
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as name,
        mounted(Path(name) / "full", f"size=1m,mode=755,uid={account}") as full,
    ):
        Path(name).chmod(0o755)
        file = single_file(launcher, Path(name) / "gantry", filler=2 << 20)
        as_other = ["setpriv", f"--reuid={account}", "--clear-groups", str(file)]
        for variable, code, words in (
            ("XDG_CACHE_HOME", 7, str(next_place)),
            ("GANTRY_UNPACK", 1, "name one with GANTRY_UNPACK):\n"),
        ):
            environment = {variable: str(full), "PATH": "/usr/bin:/bin"}
            done = subprocess.run(as_other, env=environment, capture_output=True, text=True, check=False)
            assert (done.returncode, words in done.stderr) == (code, True), done.stderr
            assert not list(full.rglob("*.unfinished"))
        assert "no space left on device" in done.stderr
        shutil.rmtree(next_place)


def test_a_folder_that_runs_no_programs_is_named(launcher: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "noexec", "noexec") as place:
        done = run(single_file(launcher, tmp_path / "gantry"), place / "trees")
    assert done.returncode == 1
    assert re.search(r"noexec/trees is on a file system that runs no programs", done.stderr)
    assert "GANTRY_UNPACK" in done.stderr


def test_a_tree_that_runs_is_kept_and_one_long_unused_is_removed(launcher: Path, folder: Path, tmp_path: Path) -> None:
    """A process holds its tree, whatever it has become by exec."""
    waits = single_file(launcher, tmp_path / "waits", "#!/bin/sh\nread line\n")
    running = subprocess.Popen([waits], env={"GANTRY_UNPACK": str(folder)}, stdin=subprocess.PIPE)
    try:
        wait_until(lambda: Path(f"/proc/{running.pid}/exe").resolve().name not in ("waits", ""))
        (held,) = trees(folder)
        run(single_file(launcher, tmp_path / "unused"), folder)
        for tree in trees(folder):
            os.utime(tree, (0, 0))
        run(single_file(launcher, tmp_path / "newer", INTERPRETER + "# newer\n"), folder)
        assert held in trees(folder) and len(trees(folder)) == 2
    finally:
        running.communicate(b"\n")


def test_the_lock_names_what_is_compiled_into_it() -> None:
    contains = read_lock()["launcher"]["contains"]
    module = (LAUNCHER / "go.mod").read_text()
    assert f"toolchain go{contains['go']}\n" in module
    assert f"klauspost/compress v{contains['compress']}\n" in module and module.count("require") == 1


def trees(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if re.fullmatch("[0-9a-f]{32}", path.name)]
