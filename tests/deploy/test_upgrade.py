"""deploy/upgrade: from an earlier commit to this one and back, with one data folder; messages and offsets are kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

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


def upgrade(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """This commit's script on that checkout. What it installs is here already: uv and pip are not asked."""
    script = (ROOT / "deploy" / "upgrade").read_text()
    script = script.replace(
        '. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"', f'root={clone}; say() {{ echo "$*" >&2; }}'
    )
    script = script.replace("    bash -c 'set -e; . deploy/environment.sh; make_venv; install_lock", "    : 'what is")
    assert "make_venv" not in script and f"root={clone}" in script
    return subprocess.run(["bash", "-c", script, "upgrade", *words], capture_output=True, text=True, check=False)


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


def test_messages_and_offsets_are_kept_to_this_commit_and_back(
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


@pytest.mark.parametrize("had", [1, None])
def test_a_store_with_a_newer_format_is_refused_before_anything_changes(
    small: Path, tmp_path: Path, had: int | None
) -> None:
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


def test_a_database_in_postgresql_stays_and_the_dump_that_was_advised_is_the_way_back(
    small: Path, tmp_path: Path
) -> None:
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
