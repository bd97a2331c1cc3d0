"""What clients send and get, as values: messages, ids, handles, statuses. Made, checked and read without I/O."""
