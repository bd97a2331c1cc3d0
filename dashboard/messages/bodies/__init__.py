"""Bodies of messages for people: unpacked, decoded, folded. Bytes in, texts out; registry.py alone asks elsewhere."""
