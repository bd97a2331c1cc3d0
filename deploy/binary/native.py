"""What is compiled here, by a compiler that is part of the lock and for a glibc that old machines have."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from deploy.binary.interpreter import install, python_of
from deploy.binary.kept import Kept, hash_of, hash_of_modules
from deploy.binary.parts import LOCK, BuildError, read_lock, run
from deploy.lock_file import LOCKS

TARGET = "x86_64-linux-gnu.2.28"
# Without zig's own runtime library: glibc's memcpy is chosen by the processor, and what only the library has, such as
# __builtin_cpu_supports (its one says no to everything), is an error then. Without frame pointers, as gcc compiles.
FLAGS = ("-rtlib=none", "-fomit-frame-pointer")
UNWINDER = "libgcc_s.so.1"
# The names that extension modules written in Rust ask this library for, under the versions that they have in GCC's own.
UNWINDER_NAMES = """
GCC_3.0 { global: _Unwind_DeleteException; _Unwind_FindEnclosingFunction; _Unwind_ForcedUnwind;
    _Unwind_GetDataRelBase; _Unwind_GetGR; _Unwind_GetIP; _Unwind_GetLanguageSpecificData; _Unwind_GetRegionStart;
    _Unwind_GetTextRelBase; _Unwind_RaiseException; _Unwind_Resume; _Unwind_SetGR; _Unwind_SetIP; local: *; };
GCC_3.3 { global: _Unwind_Backtrace; _Unwind_GetCFA; _Unwind_Resume_or_Rethrow; } GCC_3.0;
GCC_3.3.1 { global: __gcc_personality_v0; } GCC_3.3;
GCC_4.2.0 { global: _Unwind_GetIPInfo; } GCC_3.3.1;
"""
UNWINDER_SOURCES = {
    "c++": ("libunwind.cpp",),
    "c": ("UnwindLevel1.c", "UnwindLevel1-gcc-ext.c", "gcc_personality_v0.c"),
    "assembler-with-cpp": ("UnwindRegistersRestore.S", "UnwindRegistersSave.S"),
}


def unwinder(kept: Kept) -> Path:
    """LLVM's unwinder under the name of GCC's, which a machine with glibc alone does not have. Raises BuildError."""
    zig = _zig()
    version = read_lock()["compiler"]["contains"]["libunwind"]
    if f"clang version {version}\n" not in (said := run([zig, "cc", "--version"])):
        raise BuildError(f"{LOCK.name} says libunwind {version}, but the compiler says: {said}")
    sources = zig.parent / "lib" / "libunwind"
    command = [str(zig), "c++", "-target", TARGET, "-O2", "-DNDEBUG", "-fPIC", "-shared", "-s", "-nostdlib++"]
    command += ["-fno-exceptions", "-fno-rtti", "-funwind-tables", "-D_LIBUNWIND_IS_NATIVE_ONLY"]
    command += [f"-I{sources / 'include'}", f"-Wl,-soname,{UNWINDER}"]
    for language, names in UNWINDER_SOURCES.items():
        command += ["-x", language, *(str(sources / "src" / name) for name in names)]

    def make(to: Path) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".map") as names:
            names.write(UNWINDER_NAMES)
            names.flush()
            run([*command, f"-Wl,--version-script={names.name}", "-o", to], **_own_cache(kept))

    return kept.made("unwinder", hash_of(LOCKS / "binary.lock", hash_of_modules("native")), make)


def add_fast_path(kept: Kept, tree: Path, packages: Path) -> None:
    """Compile the fast path of the packages in a folder, for the tree, and put it beside them. Raises BuildError."""
    lock = LOCKS / "fast-path.lock"
    cython = kept.made("cython", hash_of(lock), lambda folder: install(tree, lock, folder))
    ship = "import pathlib, sys; from appliance.fast_path.build import ship; ship(pathlib.Path(sys.argv[1]))"
    run(
        [python_of(tree), "-P", "-B", "-c", ship, packages / "appliance" / "fast_path"],
        PYTHONPATH=f"{packages}:{cython}", CC=shlex.join([str(_zig()), "cc", "-target", TARGET, "-s", *FLAGS]),
        **_own_cache(kept),
    )  # fmt: skip


def _own_cache(kept: Kept) -> dict[str, str]:
    """Of zig, which would take the home folder otherwise."""
    return {"ZIG_GLOBAL_CACHE_DIR": str(kept.folder / "zig"), "ZIG_LOCAL_CACHE_DIR": str(kept.folder / "zig")}


def _zig() -> Path:
    for folder in map(Path, sys.path):
        found = folder / "ziglang" / "zig"
        if found.exists():
            return found
    raise BuildError("the compiler is missing: install deploy/locks/binary.lock")
