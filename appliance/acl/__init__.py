"""Who may do what: accounts, addresses, signatures, and the written-out table of request codes."""
