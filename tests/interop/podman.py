"""Docker's commands for one test: a Podman with images, containers, locks and settings of its own, all below a folder.

It reads none of the machine's settings, and its own say what Podman would otherwise choose by the machine. runc wants
a cgroup for a container; as cgroupfs it makes one with and without systemd. crun would do without, but refuses to run
where both versions of cgroups are mounted.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.conftest import missing, require_tool
from tests.source_files import ROOT

LIMIT_S = 600  # of one command, which copies some hundred megabytes at most
SETTINGS = """
[containers]
apparmor_profile = "unconfined" # its own would stay loaded in the kernel
cgroups = "no-conmon"
default_ulimits = [] # more than the machine may allow; and each `run` says --ulimit=host
log_driver = "k8s-file"
netns = "none"
pids_limit = 0
[network]
network_config_dir = "FOLDER/networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "runc"
"""


class Podman:
    def __init__(self, folder: Path) -> None:
        for tool in ("podman", "runc"):
            require_tool(tool, "it makes the image and runs it")
        self._folder, settings = folder, folder / "containers.conf"
        settings.write_text(SETTINGS.replace("FOLDER", str(folder)))
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "CONTAINERS_CONF": str(settings),
            "DISABLE_HC_SYSTEMD": "true",  # the test asks for a container's health, no timer of the machine's
        }
        places = (f"--root={folder / 'images'}", f"--runroot={folder / 'run'}", f"--tmpdir={folder / 'state'}")
        self._command = ("podman", *places, "--storage-driver=vfs")

    def __call__(self, *words: str | Path, needs: bool = True) -> subprocess.CompletedProcess[str]:
        with subprocess.Popen(
            [*self._command, *words],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        ) as running:
            try:
                output, errors = running.communicate(timeout=LIMIT_S)
            except BaseException:  # also the end of the whole run: what the command started would go on
                os.killpg(running.pid, signal.SIGKILL)
                raise
        done = subprocess.CompletedProcess(words, running.returncode, output, errors)
        assert done.returncode == 0 or not needs, (words, output, errors)
        return done

    def require_containers(self, image: str) -> None:
        """Nothing of this project runs in this one: where it does not start, the machine lets none start."""
        done = self("run", "--rm", "--ulimit=host", image, "true", needs=False)
        if done.returncode != 0:
            missing("a machine that may run containers", done.stderr.strip()[-300:])

    def close(self) -> None:
        """End what runs, and unmount what a command that was killed has left."""
        self("rm", "--force", "--all", "--volumes", needs=False)
        places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for place in reversed(places):
            if Path(place).is_relative_to(self._folder):
                subprocess.run(["umount", "--lazy", place], check=False)
