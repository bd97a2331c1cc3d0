"""Run by a Python that may become .venv's: prints how well it suits, and how it was built.

One line of four parts, with tabs between: a number, the higher the better; the file it really is; the path to call it
by; words for people. A Python that is too old ends with an exit code. Runs on any version that may be found.
"""

import os
import sys

FIRST_VERSION = (3, 11)
CAN_MAKE_VENV, HAS_HEADERS = 100, 10  # before the build: without headers there is no compiled fast path


def rate(variables, has_headers, can_make_venv):
    """variables: sysconfig's. Returns the number and the words."""
    score, words = rate_build(variables)
    if not has_headers:
        words += ", without its headers"
    return score + (CAN_MAKE_VENV if can_make_venv else 0) + (HAS_HEADERS if has_headers else 0), words


def rate_build(variables):
    """How fast the interpreter is: 0 to 4, in words."""
    arguments = str(variables.get("CONFIG_ARGS") or "")
    flags = " ".join(str(variables.get(name) or "") for name in ("PY_CFLAGS", "PY_CORE_CFLAGS", "PY_CORE_LDFLAGS"))
    levels = [flag for flag in str(variables.get("PY_CFLAGS") or "").split() if flag.startswith("-O")]
    level = levels[-1] if levels else ""  # the last one counts
    if variables.get("Py_DEBUG") or level in ("-O0", "-Og"):
        return 0, "built for debugging"
    # Debian builds with profiles and then takes their flags out of what sysconfig tells, one of the two only.
    is_debians = variables.get("PGO_PROF_GEN_FLAG") and variables.get("PGO_PROF_USE_FLAG") == ""
    has_profiles = "--enable-optimizations" in arguments or "-fprofile-use" in flags or bool(is_debians)
    has_lto = "-flto" in flags or ("--with-lto" in arguments and "--with-lto=no" not in arguments)
    score = 1 + (2 if has_profiles else 0) + (1 if has_lto else 0)
    names = [name for name, is_so in (("profiles", has_profiles), ("link-time optimisation", has_lto)) if is_so]
    return score, "built with " + " and ".join(names) if names else "built without profiles (some 20 % slower)"


def main(has_uv):
    if sys.version_info < FIRST_VERSION:
        return 1
    import importlib.util
    import sysconfig

    can_make_venv = has_uv or all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
    has_headers = os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h"))  # noqa: PTH113, PTH118
    score, words = rate(sysconfig.get_config_vars(), has_headers, can_make_venv)
    version = ".".join(str(part) for part in sys.version_info[:3])
    real = os.path.realpath(sys.executable)
    sys.stdout.write("%d\t%s\t%s\tPython %s, %s\n" % (score, real, sys.executable, version, words))  # noqa: UP031
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["uv"]))
