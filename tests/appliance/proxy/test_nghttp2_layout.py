"""What nghttp2.pxd declares of libnghttp2 is what its header says, where the header is (Debian: libnghttp2-dev)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from appliance import fast_path
from appliance.fast_path.toolchain import machines_part
from tests.conftest import missing

FOLDER = Path(fast_path.__file__).parent
HEADER = Path("/usr/include/nghttp2/nghttp2.h")
SYMBOL = re.compile(r'http2\.(\w+)\)\[0\] = _symbol\(\s*library, "(\w+)"\)')
STRUCT = re.compile(r"^cdef struct (nghttp2_\w+):\n((?:    .+\n)+)", re.M)
SLOT = re.compile(r"^    (\w[\w ]*\*?) ?\(\*(\w+)\)\((.*?)\) noexcept$", re.M | re.S)
NUMBERS = {
    "DEFERRED": "NGHTTP2_ERR_DEFERRED",
    "CALLBACK_FAILED": "NGHTTP2_ERR_CALLBACK_FAILURE",
    "DATA_EOF": "NGHTTP2_DATA_FLAG_EOF",
    "DATA_NO_END_STREAM": "NGHTTP2_DATA_FLAG_NO_END_STREAM",
    "END_STREAM": "NGHTTP2_FLAG_END_STREAM",
    "HEADERS_FRAME": "NGHTTP2_HEADERS",
    "MAX_CONCURRENT_STREAMS": "NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS",
    "INITIAL_WINDOW_SIZE": "NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE",
    "MAX_HEADER_LIST_SIZE": "NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE",
}


def program() -> str:
    """C that compiles only when both say the same: sizes and places of fields, types of functions, numbers."""
    declared, used = (FOLDER / "nghttp2.pxd").read_text(), (FOLDER / "fast_http2.pxi").read_text()
    lines = ["#include <nghttp2/nghttp2.h>", "#include <stddef.h>"]
    for name, body in STRUCT.findall(declared):
        fields = [line.strip() for line in body.splitlines()]
        lines.append(
            f"struct own_{name} {{ {' '.join(field + ';' for field in fields)} }};".replace(
                "read_callback read_callback", "nghttp2_data_source_read_callback read_callback"
            )
        )
        lines.append(f'_Static_assert(sizeof(struct own_{name}) == sizeof({name}), "{name}");')
        for field in fields:
            plain = field.rpartition(" ")[2].lstrip("*")
            lines.append(
                f'_Static_assert(offsetof(struct own_{name}, {plain}) == offsetof({name}, {plain}), "{name}.{plain}");'
            )
    slots = {slot: (answer, arguments) for answer, slot, arguments in SLOT.findall(declared)}
    symbols = dict(SYMBOL.findall(used))
    assert set(slots) == set(symbols)
    for slot, (answer, arguments) in slots.items():
        for own, callback in CALLBACKS.items():
            arguments = re.sub(rf"\b{own}\b", callback, arguments)
        lines.append(f"{answer} (*slot_{slot})({' '.join(arguments.split())}) = nghttp2_{symbols[slot]};")
    for own, name in NUMBERS.items():
        (value,) = re.findall(rf"^    {own} = (-?\d+)", used, re.M)
        lines.append(f'_Static_assert({name} == {value}, "{own}");')
    return "\n".join(lines)


CALLBACKS = {
    "on_header": "nghttp2_on_header_callback",
    "on_data": "nghttp2_on_data_chunk_recv_callback",
    "on_close": "nghttp2_on_stream_close_callback",
}


def test_what_is_declared_is_what_the_header_says(tmp_path: Path) -> None:
    if not HEADER.is_file():
        missing("nghttp2.h", "install libnghttp2-dev")
    text = program().replace("nghttp2_session_callbacks *, on_frame", "nghttp2_session_callbacks *, ON_FRAME")
    for slot, callback in (
        ("begin_frame", "nghttp2_on_begin_frame_callback"),
        ("frame", "nghttp2_on_frame_recv_callback"),
    ):
        text = re.sub(rf"(slot_callbacks_on_{slot}\).*?)ON_FRAME", rf"\1{callback}", text)
    source = tmp_path / "layout.c"
    source.write_text(text)
    command = [*machines_part(), "-std=gnu11", "-Werror=incompatible-pointer-types", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr + text
