"""The generated code has what the .proto files say: each message, field, number and type, and the service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor

from appliance.proxy import protocol
from appliance.proxy.protocol import definition_pb2, service_pb2

FOLDER = Path(protocol.__file__).parent
FILES = {"definition.proto": definition_pb2.DESCRIPTOR, "service.proto": service_pb2.DESCRIPTOR}
FIELD = re.compile(r"(?:(repeated|optional)\s+)?(map<[\w\s,]+>|[\w.]+)\s+(\w+)\s*=\s*(\d+)\s*;")
VALUE = re.compile(r"(\w+)\s*=\s*(\d+)\s*;")
RPC = re.compile(r"rpc\s+(\w+)\((stream )?(\w+)\)\s*returns\s*\((stream )?(\w+)\)")
TYPES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def text_of(name: str) -> str:
    return re.sub(r"//[^\n]*", "", (FOLDER / name).read_text(encoding="utf-8"))


def blocks(text: str, path: str = "") -> dict[str, tuple[str, str]]:
    """(kind, own text without inner blocks) of each message and enum, by its dotted name."""
    found: dict[str, tuple[str, str]] = {}
    at = 0
    while match := re.compile(r"\b(message|enum)\s+(\w+)\s*\{").search(text, at):
        depth, end = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        name, inner = f"{path}{match[2]}", text[match.end() : end - 1]
        own = re.sub(r"\b(message|enum)\s+\w+\s*\{[^{}]*\}", "", inner)
        found[name] = (match[1], own)
        found |= blocks(inner, f"{name}.")
        at = end
    return found


def generated(descriptor: FileDescriptor) -> dict[str, Descriptor | EnumDescriptor]:
    found: dict[str, Descriptor | EnumDescriptor] = {}

    def add(name: str, item: Descriptor | EnumDescriptor) -> None:
        found[name] = item
        if isinstance(item, Descriptor):
            for inner in (*item.nested_types, *item.enum_types):
                if (
                    not inner.name.endswith("Entry")
                    or not getattr(inner, "GetOptions", None)
                    or not inner.GetOptions().map_entry
                ):  # type: ignore[union-attr]
                    add(f"{name}.{inner.name}", inner)

    for name, item in (*descriptor.message_types_by_name.items(), *descriptor.enum_types_by_name.items()):
        add(name, item)
    return found


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def told(field: FieldDescriptor) -> tuple[str, str, str, int]:
    """A field as the text says it: how often, of which type, name, number."""
    if is_map(field):
        kind = f"map<{','.join(TYPES[inner.type] for inner in field.message_type.fields)}>"
        return "", kind, field.name, field.number
    named = field.message_type or field.enum_type
    kind = named.name if named is not None else TYPES[field.type]
    if field.is_repeated:
        often = "repeated"
    else:
        often = "optional" if field.containing_oneof and field.containing_oneof.name.startswith("_") else ""
    return often, kind, field.name, field.number


@pytest.mark.parametrize("name", FILES)
def test_messages_and_numbers_are_those_of_the_text(name: str) -> None:
    written, made = blocks(text_of(name)), generated(FILES[name])
    assert set(written) == set(made)
    assert len(written) > 20
    for path, (kind, own) in written.items():
        item = made[path]
        if kind == "enum":
            assert isinstance(item, EnumDescriptor)
            assert {(match[1], int(match[2])) for match in VALUE.finditer(own)} == {
                (value.name, value.number) for value in item.values
            }, path
        else:
            assert isinstance(item, Descriptor)
            fields = {
                (match[1] or "", match[2].replace(" ", "").rpartition(".")[2], match[3], int(match[4]))
                for match in FIELD.finditer(own)
            }
            assert fields == {told(field) for field in item.fields}, path


def test_the_service_has_the_calls_of_the_text() -> None:
    calls = {
        (match[1], bool(match[2]), match[3], bool(match[4]), match[5])
        for match in RPC.finditer(text_of("service.proto"))
    }
    methods = service_pb2.DESCRIPTOR.services_by_name["MessagingService"].methods
    assert calls == {
        (each.name, each.client_streaming, each.input_type.name, each.server_streaming, each.output_type.name)
        for each in methods
    }
    assert len(calls) == 18 or len(calls) > 14


def test_the_licence_of_the_files_is_kept() -> None:
    for name in FILES:
        assert "Licensed to the Apache Software Foundation (ASF)" in (FOLDER / name).read_text(encoding="utf-8")
    assert "The Apache Software Foundation" in (FOLDER / "NOTICE").read_text(encoding="utf-8")
