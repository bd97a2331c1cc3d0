"""Bodies of messages for people: unpacked, decoded, folded, as a program. Pure: bytes in, texts out."""
