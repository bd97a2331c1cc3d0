"""Whole registrations at once; brokers and name servers read and write them in parts."""

from __future__ import annotations

from gantrymq.remoting.admin_bodies import RegisterBrokerBody
from gantrymq.remoting.registration import compressed_parts, finished, reading_registration


def read_registration(body: bytes, *, version: int, compressed: bool) -> RegisterBrokerBody:
    """Read a body of 103 from a broker of that MQVersion. Raises BodyError."""
    return finished(reading_registration(body, version=version, compressed=compressed))


def compress_registration(registration: RegisterBrokerBody) -> bytes:
    """Write the compressed shape."""
    wrapper = registration.topic_config_serialize_wrapper
    topics = list(wrapper.topic_config_table.values())
    return b"".join(compressed_parts(topics, wrapper.data_version.to_json(), registration.filter_server_list))
