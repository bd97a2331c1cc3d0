"""The generated code is what protoc makes of the .proto files, which are Apache's."""

from __future__ import annotations

from tests.appliance.proxy import protocol_code
from tests.conftest import missing

FOLDER = protocol_code.FOLDER


def test_the_code_is_as_protoc_would_write_it() -> None:
    if not protocol_code.PROTOC.exists():
        missing("protoc", "it is in the lock for Linux on x86-64 alone")
    written = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*_pb2.py")}
    generated = {name: text for name, text in protocol_code.generated().items() if name.endswith(".py")}
    assert written == generated, "write it again: python -m tests.appliance.proxy.protocol_code"


def test_the_licence_of_the_files_is_kept() -> None:
    for name in ("definition.proto", "service.proto"):
        assert "Licensed to the Apache Software Foundation (ASF)" in (FOLDER / name).read_text(encoding="utf-8")
    assert "The Apache Software Foundation" in (FOLDER / "NOTICE").read_text(encoding="utf-8")
