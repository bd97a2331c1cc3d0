"""Fetches what locks/binary.toml names, by the registries' own tools, and compares it with the hashes there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tomllib
import xml.etree.ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.lock_file import BINARY as LOCK

FETCH_LIMIT_S = 1800.0
MAVEN_GET = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"


class BuildError(Exception):
    """The single file can't be built; the text says what is missing or differs."""


def read_lock() -> dict[str, Any]:
    return tomllib.loads(LOCK.read_text(encoding="utf-8"))


def fetch_module(part: dict[str, Any]) -> Path:
    """The zip of a Go module. Raises BuildError."""
    answer = run(["go", "mod", "download", "-json", f"{part['module']}@{part['version']}"], cwd="/")
    return _compared(Path(json.loads(answer)["Zip"]), part)


def fetch_artifact(part: dict[str, Any]) -> Path:
    """A file of a Maven repository. Raises BuildError."""
    group, name, version, kind, classifier = part["artifact"].split(":")
    place = _maven_folder() / group.replace(".", "/") / name / version / f"{name}-{version}-{classifier}.{kind}"
    if not place.exists():
        asked = f"{group}:{name}:{version}:{kind}:{classifier}"
        run(["mvn", "-q", "-B", MAVEN_GET, f"-Dartifact={asked}", "-Dtransitive=false"])
    return _compared(place, part)


def run(command: Sequence[str | Path], *, cwd: str | Path | None = None, **variables: str) -> str:
    """What a command prints. Raises BuildError with its last words."""
    try:
        done = subprocess.run(
            list(command), cwd=cwd, env=os.environ | variables, capture_output=True, text=True, check=False,
            timeout=FETCH_LIMIT_S,
        )  # fmt: skip
    except FileNotFoundError as exc:
        raise BuildError(f"{command[0]} is missing: install it (Debian: maven, golang-go)") from exc
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise BuildError(f"{' '.join(map(str, command[:6]))} … failed:\n{words}")
    return done.stdout


def _maven_folder() -> Path:
    """Where Maven keeps what it fetched, which its settings may name."""
    home = Path.home() / ".m2"
    for settings in (home / "settings.xml",):
        if settings.exists():
            for item in xml.etree.ElementTree.parse(settings).iter():
                if item.tag.rpartition("}")[2] == "localRepository" and item.text:
                    return Path(item.text)
    return home / "repository"


def _compared(path: Path, part: dict[str, Any]) -> Path:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != part["sha256"]:
        raise BuildError(f"{path.name} is another file than {LOCK.name} says: SHA-256 {found}, not {part['sha256']}")
    return path
