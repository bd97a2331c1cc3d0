"""Jars from Maven: resolved by `mvn` itself, once for each set of artifacts, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gantrymq.errors import GantryError
from gantrymq.home import home_folder

MAVEN_TIMEOUT_S = 600.0
QUICK_MAVEN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # unless the user has options: it lives for seconds
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>gantrymq</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <properties><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
  <dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"

Artifacts = tuple[str, ...]  # GROUP:ARTIFACT:VERSION each


class ToolError(GantryError):
    """A program the benchmark needs is missing or failed; the text says which and what to do."""


def cache_folder() -> Path:
    """Where downloads live between runs: outside the tree, in the place the desktop standard names."""
    base = os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache"
    return Path(base) / "gantrymq"


def find_tool(name: str, reason: str) -> Path:
    """The path of a program. Raises ToolError when there is none."""
    found = shutil.which(name)
    if found is None:
        raise ToolError(f"{name} is missing: {reason}")
    return Path(found)


def rocketmqs(version: str, *names: str) -> Artifacts:
    """RocketMQ's own artifacts as they are published."""
    return tuple(f"org.apache.rocketmq:rocketmq-{name}:{version}" for name in names)


def copied_jars(artifacts: Artifacts) -> Path:
    """A folder with the artifacts and all that they need, and nothing else. Raises ToolError.

    Filled in a folder beside it and renamed, so that two test runs at once and a broken download do no harm.
    """
    digest = hashlib.sha256(" ".join(artifacts).encode()).hexdigest()[:12]
    name = artifacts[0].split(":")[1]
    folder = cache_folder() / "jars" / f"{name}-{digest}"
    if folder.is_dir():
        return folder
    maven = find_tool("mvn", f"Maven copies the jars of {name}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        work = Path(scratch)
        dependencies = (_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
        (work / "pom.xml").write_text(_PROJECT.format("".join(dependencies)), encoding="utf-8")
        command: list[str | Path] = [maven, "-B", "-q", "-f", work / "pom.xml", "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={work / 'jars'}"]
        done = _run(command)
        if done.returncode != 0:  # once more: Maven remembers a download that failed, -U makes it forget
            done = _run([*command, "-U"])
        if done.returncode != 0 or not any((work / "jars").glob("*.jar")):
            raise ToolError(f"Maven could not copy the jars of {name}: {(done.stdout + done.stderr)[-2000:]}")
        try:
            (work / "jars").rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another run was faster
                raise
    return folder


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    environment = {"MAVEN_OPTS": QUICK_MAVEN, **os.environ}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_S, check=False, env=environment
    )


def class_path(folder: Path) -> str:
    """The folder's jars as Java's -cp takes them."""
    return str(folder / "*")
