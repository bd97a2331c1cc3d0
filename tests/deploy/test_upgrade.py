"""deploy/upgrade: from an earlier commit to this one and back, with one data folder; messages and offsets are kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq import AdminClient, Message, Producer, PullConsumer, SendStatus
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance_process import RunningAppliance
from tests.conftest import missing

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
COMMITS_BEFORE = 20
TOPIC, GROUP = "Upgraded", "upgraders"
EACH = 200


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


def test_before_other_tables_come_the_script_says_what_to_do_about_postgresql(
    clone: Path, commits: tuple[str, str], tmp_path: Path
) -> None:
    """It copies SQLite alone: without a dump there would be no way back."""
    data, migrations = tmp_path / "data", clone / "dashboard" / "migrations"
    data.mkdir()
    (data / "gantry.format").touch()
    for changed, is_said in [(migrations / "9999_more.py", True), (clone / "another.txt", False)]:
        changed.touch()
        git(clone, "add", str(changed))
        git(clone, "-c", "user.name=a", "-c", "user.email=a@b.invalid", "commit", "--quiet", "--message", "Change")
        newer = git(clone, "rev-parse", "HEAD")
        git(clone, "checkout", "--quiet", "--detach", "HEAD~1")
        for words, advice in [((newer,), "make a dump before you start it"), (("--back",), "into an empty database")]:
            done = upgrade(clone, *words, str(data))
            assert done.returncode == 0, done.stderr
            assert done.stderr.startswith("The dashboard's tables differ") == (advice in done.stderr) == is_said
