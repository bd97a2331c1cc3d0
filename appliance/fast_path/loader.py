"""Finds the compiled module of just these sources, or says why the broker runs without it.

GANTRY_FAST_PATH (fast_path in gantry.toml) decides for a process: `off` leaves it out, `on` refuses to run without it,
`auto` (the default) takes it when it is there. A broker's own fastPathEnable=false leaves it out in any case.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from types import ModuleType
from typing import NamedTuple

from appliance.errors import StartError
from appliance.fast_path.artifact import MODULE, Artifact, of_this_checkout, shipped
from gantrymq.errors import ConfigError

VARIABLE = "GANTRY_FAST_PATH"
AUTO, ON, OFF, SANITIZE = "auto", "on", "off", "sanitize"  # the last one: on, built with sanitizers, for tests
BUILD_COMMAND = "python -m appliance.fast_path.build"


class FastPathStatus(NamedTuple):
    """Whether the compiled fast path is used; why: the reason if it is not, else what compiled it."""

    is_on: bool
    why: str

    def __str__(self) -> str:
        return "on" if self.is_on else f"off ({self.why})"


def load(*, enabled: bool = True) -> ModuleType | None:
    """The compiled module; None: run without it, `status` says why.

    enabled: the broker's own setting. Raises ConfigError for a value of GANTRY_FAST_PATH that means nothing, StartError
    if it is `on` and the module is not there.
    """
    wanted = _wanted()
    if wanted == OFF or not enabled:
        return None
    module, why = _found(wanted == SANITIZE)
    if module is None and wanted != AUTO:
        raise StartError(f"{VARIABLE}={wanted}, but the compiled fast path is not there: {why}")
    return module


def status(*, enabled: bool = True) -> FastPathStatus:
    """What `load` does with the same argument, in words."""
    try:
        wanted = _wanted()
    except ConfigError as exc:
        return FastPathStatus(False, str(exc))
    if wanted == OFF:
        return FastPathStatus(False, f"{VARIABLE}=off")
    if not enabled:
        return FastPathStatus(False, "fastPathEnable=false")
    module, why = _found(wanted == SANITIZE)
    return FastPathStatus(module is not None, why)


def why_missing() -> str:
    """Why the compiled module is not there, whether it is wanted or not; empty if it is."""
    module, why = _found(False)
    return why if module is None else ""


def _wanted() -> str:
    value = os.environ.get(VARIABLE, "").strip().lower() or AUTO
    if value not in (AUTO, ON, OFF, SANITIZE):
        raise ConfigError(f"{VARIABLE}={value}: use auto, on or off")
    return value


@functools.cache  # a module with an extension can't be loaded twice
def _found(sanitize: bool) -> tuple[ModuleType | None, str]:
    own, of_wheel = of_this_checkout(sanitize=sanitize), shipped()
    module, why = load_artifact(of_wheel if of_wheel.tools and not sanitize and not own.tools else own)
    if module is not None:
        sys.modules[MODULE] = module
    return module, why


def load_artifact(artifact: Artifact) -> tuple[ModuleType | None, str]:
    """The module and what made it, or None and why not."""
    made_with = artifact.tools
    if not made_with:
        return (
            None,
            f"{'compiled from other sources' if artifact.is_stale else 'not compiled'}: run {BUILD_COMMAND}",
        )
    path = artifact.module_file
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None and spec.loader is not None, path  # an extension module's suffix is known
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as exc:  # another C library, a folder mounted noexec
        return None, f"{path.name} can't be loaded: {exc}"
    return module, made_with
