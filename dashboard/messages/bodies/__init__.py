"""Bodies of messages for people: unpacked, decoded, folded. Pure: bytes in, texts out."""
