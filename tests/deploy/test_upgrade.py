"""deploy/upgrade: from an earlier commit to this one and back, with one data folder; messages and offsets are kept."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.cli.checks.folder import check_formats
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq import AdminClient, Message, Producer, PullConsumer, SendStatus
from gantrymq.remoting.admin_bodies import TopicConfig
from store.startup.format_stamp import write_stamp
from tests.appliance_process import RunningAppliance
from tests.conftest import missing
from tests.servers.postgresql import running_postgresql

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
COMMITS_BEFORE = 20
TOPIC, GROUP = "Upgraded", "upgraders"
EACH = 200
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
MIGRATION = "dashboard/migrations/9999_more.py"
# All that changes something is a step; kill -9 comes before one, or in the middle of a copy or a checkout.
KILL = r"""
is_step() { builtin echo >>.git/steps; [ "$(wc -l <.git/steps)" -eq KILL_AT ]; }
echo() { if is_step; then kill -9 0; fi; builtin echo "$@"; } # its file is there already, and empty
rm() { if is_step; then kill -9 0; fi; command rm "$@"; }
mv() { if is_step; then kill -9 0; fi; command mv "$@"; }
mkdir() { if is_step; then kill -9 0; fi; command mkdir "$@"; }
cp() { # options, files, folder
    if (cd "$root" && is_step); then
        command cp "${@:1:5}" "${!#}"
        printf half >"${!#}/$5"
        kill -9 0
    fi
    command cp "$@"
}
git() {
    if [ "$1" = checkout ] && is_step; then
        export GIT_INDEX_FILE=.git/others
        command git read-tree "${!#}"
        command git checkout-index --all --force
        for each in code gone; do [ ! -e "$each" ] || printf half >"$each"; done
        : >.git/index.lock
        kill -9 0
    fi
    command git "$@"
}
installed() { if is_step; then kill -9 0; fi; }
"""
UP_STEPS, BACK_STEPS = 19, 24
UP_CHECKOUT, UP_INSTALL, BACK_NOTES = 17, 18, 8
OLDER_SCRIPT = "echo 'This one knows of nothing that was interrupted.' >&2; exit 9\n"
FILES = {
    "stamp": "gantry.format",
    "database": "dashboard/db.sqlite3",
    "broker": "brokers/broker-a/broker.properties",
    "account": "accounts/appliance.yml",
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        missing("an earlier commit", f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


@pytest.fixture(scope="module")
def commits() -> tuple[str, str]:
    """An earlier one, or the last tag; and this one."""
    head = git(ROOT, "rev-parse", "HEAD")
    tag = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "HEAD~1"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return tag.stdout.strip() or git(ROOT, "rev-parse", f"HEAD~{COMMITS_BEFORE}"), head


@pytest.fixture
def clone(tmp_path: Path, commits: tuple[str, str]) -> Path:
    """A checkout at the earlier commit, with this one's deploy/upgrade beside it, and with this .venv's packages."""
    folder = tmp_path / "clone"
    git(ROOT, "clone", "--quiet", "--no-checkout", "--shared", str(ROOT), str(folder))
    git(folder, "checkout", "--quiet", "--detach", commits[0])
    return folder


def upgrade(clone: Path, *words: str, kill_at: int = 0, installed: str = ":") -> subprocess.CompletedProcess[str]:
    """This commit's script on that checkout. What it installs is here already: uv and pip are not asked.

    kill_at: kill -9 before the so many-th command of those that change something. installed: instead of uv and pip.
    """
    script = (ROOT / "deploy" / "upgrade").read_text()
    script = script.replace("    bash -c 'set -e; . deploy/environment.sh; make_venv; install_lock", "    installed #")
    assert "make_venv" not in script
    beside = KILL.replace("KILL_AT", str(kill_at)) if kill_at else f"installed() {{ {installed}; }}\n"
    if kill_at:  # else the steps go on: the script that was killed may be run again, from its copy
        (clone / ".git" / "steps").unlink(missing_ok=True)
    path = clone / ".git" / "upgrade"  # which neither commit has
    path.write_text(beside + script)
    return run("bash", str(path), *words)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)


def running(clone: Path, data: Path) -> RunningAppliance:
    command = (sys.executable, "-P", "-m", "appliance", "up")
    return RunningAppliance(data, command=command, environment={"PYTHONPATH": str(clone), "GANTRY_FAST_PATH": "off"})


async def send_and_consume(namesrv: str, life: int) -> tuple[int, int]:
    """Send some, consume half of them. Returns how many messages there are, and how many of them are consumed."""
    async with AdminClient(namesrv) as admin, Producer(namesrv, group="life") as producer:
        await admin.topics.create(TopicConfig(TOPIC, read_queue_nums=1, write_queue_nums=1))
        for number in range(EACH):
            result = await producer.send(Message(TOPIC, b"%d-%d" % (life, number)))
            assert result.status is SendStatus.SEND_OK
        (address,) = (await admin.cluster.masters()).values()
        before = await admin.offsets.get_at(address, GROUP, TOPIC, 0) or 0
        await admin.offsets.set_at(address, GROUP, TOPIC, 0, before + EACH // 2)
        return await admin.offsets.max_at(address, TOPIC, 0), before + EACH // 2


async def bodies(namesrv: str, count: int) -> list[bytes]:
    async with PullConsumer(namesrv, group="reader") as consumer:
        (queue,) = await consumer.queues(TOPIC)
        await consumer.assign([queue])
        await consumer.seek_to_begin(queue)
        found: list[bytes] = []
        while len(found) < count:
            found += [each.body for each in await consumer.poll()]
        return found


def test_messages_and_offsets_stay_to_this_commit_and_back(
    clone: Path, commits: tuple[str, str], tmp_path: Path
) -> None:
    data, expected = tmp_path / "data", []
    earlier, this = commits
    for life, (words, commit) in enumerate([((), earlier), ((this,), this), (("--back",), earlier), ((this,), this)]):
        if words:
            done = upgrade(clone, *words, str(data))
            assert done.returncode == 0, done.stderr
        assert git(clone, "rev-parse", "HEAD") == git(ROOT, "rev-parse", commit)
        with running(clone, data) as gantry:
            count, consumed = asyncio.run(send_and_consume(gantry.namesrv, life))
            expected += [b"%d-%d" % (life, number) for number in range(EACH)]
            assert (count, consumed) == (len(expected), len(expected) // 2)
            assert asyncio.run(bodies(gantry.namesrv, count)) == expected
            if words:
                assert "stop it" in upgrade(clone, "--back", str(data)).stderr  # while it runs nothing is changed
            assert gantry.stop() == 0


def test_without_an_upgrade_there_is_no_way_back_and_a_wrong_commit_changes_nothing(
    clone: Path, commits: tuple[str, str], tmp_path: Path
) -> None:
    for words, hint in [
        (("--back", str(tmp_path)), "has not upgraded this data folder"),
        ((), "which commit? deploy/upgrade COMMIT"),
        (("--bakc", str(tmp_path)), "there is no option --bakc: deploy/upgrade COMMIT"),
        (("no-such-thing", str(tmp_path)), "there is no commit no-such-thing"),
        ((commits[0], str(tmp_path)), "already"),
        ((commits[1], str(tmp_path / "nowhere")), "name the data folder"),
    ]:
        done = upgrade(clone, *words)
        assert (done.returncode, hint in done.stderr) == (1, True), done.stderr
    assert upgrade(clone, "--help").stdout.startswith("usage: deploy/upgrade COMMIT [DATA], or ")
    assert git(clone, "rev-parse", "HEAD") == git(ROOT, "rev-parse", commits[0])


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout for what asks no version to start: the script looks at nothing in it but the tables."""
    folder = tmp_path / "small"
    git(tmp_path, "init", "--quiet", str(folder))
    git(folder, *AUTHOR, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    return folder


def newer(checkout: Path, added: str) -> str:
    """A commit after the one that is checked out, which stays so."""
    before = git(checkout, "rev-parse", "HEAD")
    (checkout / added).parent.mkdir(parents=True, exist_ok=True)
    (checkout / added).touch()
    git(checkout, "add", added)
    git(checkout, *AUTHOR, "commit", "--quiet", "--message", "Change")
    made = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "--quiet", "--detach", before)
    return made


def filled(data: Path, **files: str) -> Path:
    for name, content in files.items():
        path = data / FILES[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return data


def contents(data: Path) -> dict[str, str]:
    return {name: (data / path).read_text() for name, path in FILES.items() if (data / path).exists()}


@pytest.mark.parametrize("is_stamped", [True, False])
def test_the_way_back_brings_what_the_newer_one_changed(small: Path, tmp_path: Path, is_stamped: bool) -> None:
    """Also to a folder from before there were stamps: that of the newer version goes."""
    before = {"database": "a", "broker": "a", "account": "a"} | ({"stamp": "1"} if is_stamped else {})
    data = filled(tmp_path / "data", **before)
    done = upgrade(small, newer(small, MIGRATION), str(data))
    assert done.returncode == 0, done.stderr
    after = dict.fromkeys(FILES, "b")
    filled(data, **after)
    done = upgrade(small, "--back", str(data))
    assert done.returncode == 0, done.stderr
    assert contents(data) == before
    assert contents(data / "before-upgrade" / "after") == after


def test_a_way_back_that_was_interrupted_is_ended_by_the_next(small: Path, tmp_path: Path) -> None:
    """The checkout is at the older commit already, the data are not. One that has ended is not done twice."""
    before, target = {"stamp": "1", "database": "a"}, newer(small, MIGRATION)
    data = filled(tmp_path / "data", **before)
    assert upgrade(small, target, str(data)).returncode == 0
    filled(data, database="b")
    git(small, "checkout", "--quiet", "--detach", "HEAD~1")
    assert "was interrupted" in upgrade(small, target, str(data)).stderr  # it would keep the newer database alone
    for left, is_brought in [("b", True), ("c", False)]:
        filled(data, database=left)
        done = upgrade(small, "--back", str(data))
        assert (done.returncode, "of before the upgrade" in done.stderr) == (0, is_brought), done.stderr
        assert contents(data) == (before if is_brought else before | {"database": left})
    assert (data / "before-upgrade" / "after" / FILES["database"]).read_text() == "b"


@pytest.fixture
def two_versions(small: Path) -> tuple[str, str]:
    """Of the code, too; the older one is checked out."""
    (small / "deploy").mkdir()
    for name, content in {"code": "older", "gone": "older", "deploy/upgrade": OLDER_SCRIPT}.items():
        (small / name).write_text(content)
        git(small, "add", name)
    git(small, *AUTHOR, "commit", "--quiet", "--message", "Older")
    older = git(small, "rev-parse", "HEAD")
    (small / "code").write_text("newer")
    git(small, "rm", "--quiet", "gone")
    git(small, *AUTHOR, "commit", "--quiet", "--all", "--message", "Newer")
    last = newer(small, MIGRATION)
    git(small, "checkout", "--quiet", "--detach", older)
    return older, last


def told(data: Path) -> str:
    """What the appliance says of an upgrade when it refuses to start."""
    found = check_formats(ApplianceConfig(data=data))
    return "".join(each.sentence for each in found if each.is_fatal and "An upgrade" in each.sentence)


def end_after_kill(small: Path, data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What an administrator does: what is named, or, as long as nothing is, the same once more.

    Whatever is begun, the appliance does not start, and names what ends it.
    """
    is_begun = bool(git(small, "status", "--porcelain")) or (data / "before-upgrade" / "saved").exists()
    note = data / "before-upgrade" / "under-way"
    assert not is_begun or f"this ends it: `{note.read_text().strip()}`" in told(data)

    def end() -> subprocess.CompletedProcess[str]:
        if words or not told(data):
            return upgrade(small, *words or ["--back"], str(data))
        return run("bash", "-c", f"cd {small}; {note.read_text()}")

    done = end()
    if "index.lock" in done.stderr:
        assert (done.returncode, "remove the file manually" in done.stderr) == (128, True)
        (small / ".git" / "index.lock").unlink()
        done = end()
    return done


def assert_at(small: Path, data: Path, commit: str) -> None:
    """And nothing of another one is left."""
    assert (git(small, "rev-parse", "HEAD"), git(small, "status", "--porcelain")) == (commit, "")
    assert not told(data)


@pytest.mark.parametrize("is_back", [False, True], ids=["again", "back"])
@pytest.mark.parametrize("step", range(1, UP_STEPS + 1))
def test_an_upgrade_that_was_killed_is_ended_by_the_same_command_or_by_the_way_back(
    small: Path, two_versions: tuple[str, str], tmp_path: Path, step: int, is_back: bool
) -> None:
    older, last = two_versions
    before = dict.fromkeys(FILES, "a")
    data = filled(tmp_path / "da ta", **before)
    assert upgrade(small, last, str(data), kill_at=step).returncode == -signal.SIGKILL
    if not is_back:
        done = end_after_kill(small, data, last)
        assert done.returncode == 0, done.stderr
        assert_at(small, data, last)
        assert contents(data / "before-upgrade" / "data") == contents(data) == before
        filled(data, **dict.fromkeys(FILES, "b"))
    done = end_after_kill(small, data, "--back")
    assert done.returncode == 0 or "has not upgraded this data folder" in done.stderr
    assert_at(small, data, older)
    assert contents(data) == before


@pytest.mark.parametrize("step", range(1, BACK_STEPS + 1))
def test_a_way_back_that_was_killed_is_ended_by_the_same_command(
    small: Path, two_versions: tuple[str, str], tmp_path: Path, step: int
) -> None:
    older, last = two_versions
    before, after = dict.fromkeys(FILES, "a"), dict.fromkeys(FILES, "b")
    data = filled(tmp_path / "da ta", **before)
    assert upgrade(small, last, str(data)).returncode == 0
    filled(data, **after)
    done = upgrade(small, "--back", str(data), kill_at=step)
    assert done.returncode == -signal.SIGKILL
    if told(data):
        command = (data / "before-upgrade" / "under-way").read_text()
        assert f"end it first: {command}" in upgrade(small, "HEAD~1", str(data)).stderr
    if (small / "gone").exists():  # the older version, which may not know that it has to wait, has its data
        assert contents(data) == before
        assert f"If this is interrupted, this ends it: {command}" in done.stderr
    done = end_after_kill(small, data)
    assert done.returncode == 0, done.stderr
    assert_at(small, data, older)
    assert contents(data) == before
    assert contents(data / "before-upgrade" / "after") == after


@pytest.mark.parametrize("step", range(1, BACK_NOTES + 1))
def test_a_way_back_from_half_a_checkout_that_was_killed_is_ended_too(
    small: Path, two_versions: tuple[str, str], tmp_path: Path, step: int
) -> None:
    """It writes over the notes of the upgrade, which are needed until then."""
    data = filled(tmp_path / "da ta", **dict.fromkeys(FILES, "a"))
    upgrade(small, two_versions[1], str(data), kill_at=UP_CHECKOUT)
    (small / ".git" / "index.lock").unlink()
    assert git(small, "status", "--porcelain")
    assert upgrade(small, "--back", str(data), kill_at=step).returncode == -signal.SIGKILL
    done = end_after_kill(small, data, "--back")
    assert done.returncode == 0, done.stderr
    assert_at(small, data, two_versions[0])


def test_what_was_changed_in_an_interrupted_checkout_is_kept(
    small: Path, two_versions: tuple[str, str], tmp_path: Path
) -> None:
    """The next upgrade does not remove it either."""
    data = filled(tmp_path / "da ta", **dict.fromkeys(FILES, "a"))
    upgrade(small, two_versions[1], str(data), kill_at=UP_INSTALL)
    assert git(small, "rev-parse", "HEAD") == two_versions[1]
    (small / "code").write_text("my own")
    done = end_after_kill(small, data)
    patch = data / "upgrade-changes.patch"
    assert (done.returncode, f"the differences are in {patch}" in done.stderr) == (0, True), done.stderr
    assert_at(small, data, two_versions[1])
    done = upgrade(small, newer(small, "another.txt"), str(data))
    assert (done.returncode, patch.exists()) == (0, True), done.stderr
    git(small, "apply", str(patch))
    assert (small / "code").read_text() == "my own"


def test_what_was_interrupted_in_another_checkout_is_ended_there(
    small: Path, two_versions: tuple[str, str], tmp_path: Path
) -> None:
    data, other = filled(tmp_path / "da ta", **dict.fromkeys(FILES, "a")), tmp_path / "other"
    upgrade(small, two_versions[1], str(data), kill_at=UP_INSTALL)
    git(tmp_path, "clone", "--quiet", str(small), str(other))
    (other / "code").write_text("my own")
    for words in [(two_versions[1],), ("--back",)]:
        done = upgrade(other, *words, str(data))
        assert (done.returncode, f"in another checkout, {small}," in done.stderr) == (1, True), done.stderr
    assert (other / "code").read_text() == "my own"
    done = run("bash", "-c", f"cd {other}; {(data / 'before-upgrade' / 'under-way').read_text()}")
    assert done.returncode == 0, done.stderr
    assert_at(small, data, two_versions[1])


@pytest.mark.parametrize(("is_way_back", "is_back"), [(False, False), (False, True), (True, True)])
def test_what_was_interrupted_by_an_earlier_script_is_ended_too(
    small: Path, two_versions: tuple[str, str], tmp_path: Path, is_way_back: bool, is_back: bool
) -> None:
    """It left no copy of itself, and did not note the checkout."""
    older, last = two_versions
    data = filled(tmp_path / "da ta", **dict.fromkeys(FILES, "a"))
    upgrade(small, last, str(data), kill_at=UP_INSTALL)
    kept = data / "before-upgrade"
    for name in ("upgrade", "checkout"):
        (kept / name).unlink()
    (kept / "under-way").write_text(f"deploy/upgrade {'--back' if is_way_back else last} {tmp_path}/da\\ ta\n")
    done = upgrade(small, "--back" if is_back else last, str(data))
    assert done.returncode == 0, done.stderr
    assert_at(small, data, older if is_back else last)


def test_root_does_not_run_a_copy_that_another_account_can_change(
    small: Path, two_versions: tuple[str, str], tmp_path: Path
) -> None:
    """The owner does. That is all that can be tried here without being root."""
    data = filled(tmp_path / "da ta", **dict.fromkeys(FILES, "a"))
    upgrade(small, two_versions[1], str(data), kill_at=UP_INSTALL)
    kept = data / "before-upgrade"
    for owner, code in [(4711, 1), (0, 0)] if os.geteuid() == 0 else [(os.geteuid(), 0)]:
        os.chown(kept, owner, -1)
        done = run("bash", "-c", (kept / "under-way").read_text())
        assert (done.returncode, f"as the account that owns {kept}" in done.stderr) == (code, code == 1), done.stderr


def test_when_the_older_packages_can_not_be_installed_all_stays_as_it_was(
    small: Path, two_versions: tuple[str, str], tmp_path: Path
) -> None:
    """An account that was removed since then, too."""
    older, last = two_versions
    data = filled(tmp_path / "data", **dict.fromkeys(FILES, "a"))
    assert upgrade(small, last, str(data)).returncode == 0
    (data / FILES["account"]).unlink()
    after = {"stamp": "b", "database": "b", "broker": "b"}
    filled(data, **after)
    done = upgrade(small, "--back", str(data), installed='[ "$(git rev-parse HEAD)" != "$wanted" ]')
    assert (done.returncode, f"the checkout is at {last} again" in done.stderr) == (1, True), done.stderr
    assert_at(small, data, last)
    assert contents(data) == after
    after = dict.fromkeys(FILES, "c")
    filled(data, **after)
    assert upgrade(small, "--back", str(data)).returncode == 0
    assert_at(small, data, older)
    assert contents(data / "before-upgrade" / "after") == after


def test_a_kill_was_tried_at_every_step(small: Path, two_versions: tuple[str, str], tmp_path: Path) -> None:
    data = filled(tmp_path / "data", **dict.fromkeys(FILES, "a"))
    assert upgrade(small, two_versions[1], str(data), kill_at=UP_STEPS + 1).returncode == 0
    filled(data, **dict.fromkeys(FILES, "b"))
    assert upgrade(small, "--back", str(data), kill_at=BACK_STEPS + 1).returncode == 0


@pytest.mark.parametrize("had", [1, None])
def test_a_store_of_a_newer_format_is_refused_before_any_change(small: Path, tmp_path: Path, had: int | None) -> None:
    """Also where it had no stamp before. The first format only stamps it, and does not stand in the way."""
    data = filled(tmp_path / "data", stamp="1", broker="a")
    store = data / "brokers/broker-a/store"
    store.mkdir()
    if had:
        write_stamp(store, had, "0.1.0")
    upgrade(small, newer(small, MIGRATION), str(data))
    at = git(small, "rev-parse", "HEAD")
    write_stamp(store, 2)
    done = upgrade(small, "--back", str(data))
    assert (done.returncode, "has a newer format" in done.stderr) == (1, True), done.stderr
    assert git(small, "rev-parse", "HEAD") == at
    write_stamp(store, 1, "0.1.0")
    done = upgrade(small, "--back", str(data))
    assert done.returncode == 0, done.stderr


def test_what_neither_version_reads_otherwise_stays_as_the_newer_one_left_it(small: Path, tmp_path: Path) -> None:
    """Neither tables nor format differ; this folder has no stamp at all."""
    data = filled(tmp_path / "data", database="a", broker="a")
    upgrade(small, newer(small, "another.txt"), str(data))
    filled(data, database="b", broker="b")
    done = upgrade(small, "--back", str(data))
    assert (done.returncode, "of before the upgrade" in done.stderr) == (0, False), done.stderr
    assert contents(data) == {"database": "b", "broker": "b"}


def test_a_folder_that_is_no_data_folder_is_refused_before_anything_changes(small: Path, tmp_path: Path) -> None:
    strange, at = tmp_path / "strange", git(small, "rev-parse", "HEAD")
    strange.mkdir()
    done = upgrade(small, newer(small, MIGRATION), str(strange))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "neither gantry.format nor brokers" in done.stderr
    assert git(small, "rev-parse", "HEAD") == at and not list(strange.iterdir())


def test_before_other_tables_come_the_script_says_what_to_do_about_postgresql(small: Path, tmp_path: Path) -> None:
    """It copies SQLite alone: without a dump there would be no way back."""
    data = filled(tmp_path / "data", stamp="1")
    for added, is_said in [(MIGRATION, True), ("another.txt", False)]:
        for words, advice in [
            ((newer(small, added),), "make a dump before you start it"),
            (("--back",), "into an empty database"),
        ]:
            done = upgrade(small, *words, str(data))
            assert done.returncode == 0, done.stderr
            assert done.stderr.startswith("The dashboard's tables differ") == (advice in done.stderr) == is_said
            assert "database is of before" not in done.stderr  # there is none in the data folder


def test_a_database_in_postgresql_stays_and_the_advised_dump_is_the_way_back(small: Path, tmp_path: Path) -> None:
    import psycopg

    data, dump = filled(tmp_path / "data", stamp="1"), tmp_path / "dump"
    with running_postgresql() as server:

        def tables(url: str, *changes: str) -> list[str]:
            with psycopg.connect(url, autocommit=True) as connection:
                for change in changes:
                    connection.execute(change.encode())
                found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
                return [name for (name,) in found]

        tables(server.url, "CREATE TABLE older (id integer)")
        advised = upgrade(small, newer(small, MIGRATION), str(data)).stderr
        assert "pg_dump --format=custom" in advised
        subprocess.run([server.program("pg_dump"), "--format=custom", f"--file={dump}", server.url], check=True)
        assert tables(server.url, "CREATE TABLE newer (id integer)") == ["newer", "older"]
        done = upgrade(small, "--back", str(data))
        assert (done.returncode, "are not copied" in done.stderr) == (0, True), done.stderr
        assert tables(server.url) == ["newer", "older"]
        tables(server.url, "CREATE DATABASE empty")
        empty = server.url_of("empty")
        subprocess.run([server.program("pg_restore"), f"--dbname={empty}", dump], check=True)
        assert tables(empty) == ["older"]
