"""Bodies of Avro and Protobuf, and the schemas that they are of."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from gantrymq.message.model import MessageExt

ORDER: dict[str, Any] = {
    "type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}}},
        {"name": "note", "type": ["null", "string"]},
    ],
}  # fmt: skip
VALUE = {"id": 17, "price": Decimal("9.50"), "lines": [{"sku": "a<b>"}], "note": "Zoë"}
SHOWN = {"id": 17, "price": "9.50", "lines": [{"sku": "a<b>"}], "note": "Zoë"}


def avro_body(value: Any = VALUE) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(ORDER), value)
    return body.getvalue()


def descriptors() -> descriptor_pb2.FileDescriptorSet:
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    payment = file.message_type.add(name="Payment")
    kinds = descriptor_pb2.FieldDescriptorProto
    for number, (name, kind) in enumerate((("order_id", kinds.TYPE_INT64), ("currency", kinds.TYPE_STRING)), start=1):
        payment.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    payment.field.add(name="inner", number=3, type=kinds.TYPE_MESSAGE, type_name=".shop.Payment",
                      label=kinds.LABEL_OPTIONAL)  # fmt: skip
    return descriptor_pb2.FileDescriptorSet(file=[file])


def payment_body() -> bytes:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptors().file[0])
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Payment"))()
    found.order_id, found.currency = 17, "EUR"
    return bytes(found.SerializeToString())


def message(topic: str, body: bytes) -> MessageExt:
    host = ("127.0.0.1", 1)
    return MessageExt(topic, body, 0, {}, 0, 0, 0, 0, 0, 0, host, 0, host, 0, 0, 0, "broker-a")
