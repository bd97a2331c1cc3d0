"""Access control: accounts, addresses, signatures, and the table of request codes with their permissions."""
